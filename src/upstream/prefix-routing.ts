// Which Handle server is responsible for a handle: the longest matching prefix decides.
import { upperAscii } from '../handle/handle.js';

interface Routed {
  /** In capitals: `21.T1` for this prefix, `21.T1.*` for those derived from it, `*` for all others. */
  prefixes: readonly string[];
}

/**
 * The servers of a handle in the order in which they are asked. A second one is there for the record of a prefix
 * (`0.NA/<prefix>`): it may be at the server of the prefix or at the one for all others.
 */
export type FindServers<Server> = (handle: string) => readonly Server[];

const PREFIX_RECORDS = '0.NA';

/** `root` has the records of all prefixes, and is asked last. */
export function createPrefixRouting<Server extends Routed>(
  servers: readonly Server[],
  root?: Server,
): FindServers<Server> {
  const byPattern = new Map<string, readonly [Server]>();
  for (const server of servers) for (const pattern of server.prefixes) byPattern.set(pattern, [server]);
  const fallback: readonly Server[] = byPattern.get('*') ?? [];

  function serverOf(prefix: string): readonly Server[] {
    const exact = byPattern.get(prefix);
    if (exact) return exact;
    for (let end = prefix.lastIndexOf('.'); end > 0; end = prefix.lastIndexOf('.', end - 1)) {
      const derived = byPattern.get(`${prefix.slice(0, end)}.*`);
      if (derived) return derived;
    }
    return fallback;
  }

  return function findServers(handle) {
    const [prefix, suffix] = splitHandle(handle);
    const server = serverOf(prefix);
    if (!prefix.startsWith('0.')) return server;
    const isPrefixRecord =
      prefix === PREFIX_RECORDS && suffix !== undefined && !byPattern.has(PREFIX_RECORDS);
    return isPrefixRecord
      ? distinct([...serverOf(upperAscii(suffix)), ...fallback, root])
      : distinct([...server, root]);
  };
}

/** In capitals; the suffix is undefined where there is no slash. */
function splitHandle(handle: string): [prefix: string, suffix: string | undefined] {
  const slash = handle.indexOf('/');
  return slash < 0
    ? [upperAscii(handle), undefined]
    : [upperAscii(handle.slice(0, slash)), handle.slice(slash + 1)];
}

const distinct = <T>(values: readonly (T | undefined)[]): T[] =>
  [...new Set(values)].filter((value) => value !== undefined);
