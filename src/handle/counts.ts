// Counts by name, of which only those above zero take memory.

/** Changes the count of a name; a missing name is not counted. */
export function changeCount<Name>(counts: Map<Name, number>, name: Name, by: number): void {
  if (name === undefined) return;
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}
