// "Did you mean": the known key that is spelled most like an unknown one.

/** More changed letters than this, or than every third one, are another word. */
const FURTHEST = 3;

/** The closest known key, or undefined when none is close. */
export function suggestKey(unknown: string, known: readonly string[]): string | undefined {
  const lastName = (key: string) => key.slice(key.lastIndexOf('.') + 1);
  const furthest = Math.min(FURTHEST, Math.ceil(unknown.length / 3));
  const closest = known
    .map((key) => ({ key, far: distance(unknown.toLowerCase(), key.toLowerCase()) }))
    .reduce((best, next) => (next.far < best.far ? next : best), { key: '', far: Infinity });
  if (closest.far <= furthest) return closest.key;
  const namesakes = known.filter((key) => lastName(key) === lastName(unknown));
  return namesakes.length === 1 ? namesakes[0] : undefined;
}

/** Levenshtein distance: how many letters have to be put in, taken out or changed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of a.split('').entries()) {
    const next = [i + 1];
    for (const [j, other] of b.split('').entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
