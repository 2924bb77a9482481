// The error for an invalid configuration: every problem on its own line, with "did you mean" for unknown keys.

export interface ConfigProblem {
  /** Undefined when the file itself is the problem. */
  key?: string;
  /** Source of the value: `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
  text: string;
}

export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(['Invalid configuration:', ...problems.map(line)].join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

const line = ({ key, source, text }: ConfigProblem): string =>
  key === undefined ? `  ${source}: ${text}` : `  ${key} (${source}): ${text}`;

/** A key that differs in more letters than this, or in more than every third, is another word. */
const MAX_DISTANCE = 3;

/** The closest known key; undefined when none is close. */
export function suggestKey(unknown: string, known: readonly string[]): string | undefined {
  const lastName = (key: string) => key.slice(key.lastIndexOf('.') + 1);
  const maxDistance = Math.min(MAX_DISTANCE, Math.ceil(unknown.length / 3));
  const closest = known
    .map((key) => ({ key, distance: editDistance(unknown.toLowerCase(), key.toLowerCase()) }))
    .reduce((best, next) => (next.distance < best.distance ? next : best), { key: '', distance: Infinity });
  if (closest.distance <= maxDistance) return closest.key;
  const namesakes = known.filter((key) => lastName(key) === lastName(unknown));
  return namesakes.length === 1 ? namesakes[0] : undefined;
}

/** Levenshtein distance: insertions, deletions and substitutions of letters. */
function editDistance(a: string, b: string): number {
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
