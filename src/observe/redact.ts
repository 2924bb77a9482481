// Takes credentials out of a finished log line, wherever in it they stand.

const CENSORED = '***';

/** A member or header with such a name holds a credential. */
const SECRET_NAME = /authorization|cookie|passw|secret|token|credential|api-?key/i;

/** Credentials in an address: everything between `://` and the last `@` before the path. */
const IN_ADDRESS = /(:\/\/)[^\s/]*@/g;

/**
 * The line is looked at as a whole, because a credential may come with a message, a child logger or
 * an error as well as with an object; pino's own redaction needs the exact path of each.
 */
export function redactLine(line: string): string {
  const isSuspect = line.includes('@') || SECRET_NAME.test(line);
  return isSuspect ? `${JSON.stringify(redact(JSON.parse(line)))}\n` : line;
}

function redact(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(IN_ADDRESS, `$1${CENSORED}@`);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return redactList(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, SECRET_NAME.test(name) ? CENSORED : redact(inner)]),
  );
}

/** Raw headers are a flat list of names and values, or a list of pairs: a value follows its name. */
function redactList(list: unknown[]): unknown[] {
  return list.map((inner, at) => {
    const before: unknown = at === 0 ? undefined : list[at - 1];
    return typeof before === 'string' && SECRET_NAME.test(before) ? CENSORED : redact(inner);
  });
}
