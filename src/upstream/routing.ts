// Routes reads and writes of handles to the responsible server.
import { type Outcome, RESPONSE_CODE, isElsewhere } from '../handle/outcome.js';
import type {
  AroundRead,
  OriginServer,
  RecordClient,
  RecordRead,
  RecordSource,
  UpstreamClient,
} from './contract.js';
import { answerWith } from './reply.js';
import { GLOBAL_PREFIX, type HandleRef, exactRef, foldedRef, refOfKey } from '../handle/handle.js';

/** Handle server response for a foreign prefix (recording "resolve: handle of unknown prefix"). */
const MEMBERS = { responseCode: RESPONSE_CODE.notResponsible, message: "That prefix doesn't live here" };
const STATUS = 400;

const NO_SERVER: Outcome = { kind: 'refused', status: STATUS, members: MEMBERS, namesHandle: true };

export const NO_ANSWER = answerWith(STATUS, MEMBERS);

interface ReadRoutes {
  servers: readonly OriginServer[];
  findServers: FindServers<OriginServer>;
  /** Servers with the records of all prefixes. */
  roots: readonly OriginServer[];
  /** Functions around a read, the first outermost. */
  aroundRead: readonly AroundRead[];
}

/** Creates the client for shared reads across all servers. */
export const routeReads = ({ servers, findServers, roots, aroundRead }: ReadRoutes): UpstreamClient => ({
  resolve(read) {
    const readServers = (): Promise<Outcome> => {
      const found = findServers(read.handle);
      return askInTurn(found, {
        ask: ({ reads }) => reads.resolve(read),
        isElsewhere: (answer, { source }) =>
          isRefusedElsewhere(answer) ||
          (answer.kind === 'not-found' &&
            // The next server of the prefix may have it; or a server for the prefix 0.NA, which may hold few
            // prefix records, is followed by the root, which holds all.
            (!source.forwards || roots.some((root) => found.includes(root)))),
        otherwise: NO_SERVER,
      });
    };
    return aroundRead.reduceRight<typeof readServers>(
      (next, around) => () => around(read, next),
      readServers,
    )();
  },
  preferPrimary(changed) {
    const withSecondaries = [...servers, ...roots].filter(({ reads }) => reads.preferPrimary !== undefined);
    if (withSecondaries.length === 0) return;
    const found = 'key' in changed ? findServers(refOfKey(changed.key)) : withSecondaries;
    for (const { reads } of found) reads.preferPrimary?.(changed);
  },
});

/** Whether a server says that another one is responsible. */
export const isRefusedElsewhere = (outcome: Outcome): boolean =>
  outcome.kind === 'refused' && isElsewhere(Number(outcome.members['responseCode']));

/** Reads a record at the servers of its handle, in order. */
export const readAtServers = (
  servers: readonly OriginServer[],
  ...given: Parameters<RecordClient['get']>
): Promise<RecordRead> =>
  askInTurn(servers, {
    ask: ({ records }) => records.get(...given),
    isElsewhere: ({ responseCode }) => isElsewhere(responseCode),
    otherwise: { ...NO_ANSWER, values: undefined },
  });

interface Asking<Answer> {
  ask: (server: OriginServer) => Promise<Answer>;
  /** Whether the next server is asked. */
  isElsewhere: (answer: Answer, server: OriginServer) => boolean;
  /** Result if there is no server. */
  otherwise: Answer;
}

/** Returns the first responsible server's response, else the last response. */
async function askInTurn<Answer>(
  servers: readonly OriginServer[],
  { ask, isElsewhere, otherwise }: Asking<Answer>,
): Promise<Answer> {
  let answer = otherwise;
  for (const server of servers) {
    answer = await ask(server);
    if (server === servers.at(-1) || !isElsewhere(answer, server)) break;
  }
  return answer;
}

interface Routed {
  /** Defaults to a Handle server. */
  source?: Pick<RecordSource, 'keepsCase' | 'holdsPrefixRecords'>;
  /** Upper-case patterns: `21.T1` for this prefix, `21.T1.*` for derived prefixes, `*` for all others. */
  prefixes: readonly string[];
}

/**
 * Returns the servers for a handle, in order. A handle under `0.` can have several: the prefix's server, the
 * default server and the roots; and so can the prefix of a repository.
 */
type FindServers<Server> = (handle: HandleRef) => readonly Server[];

interface OtherRoutes<Server> {
  /** Servers for the records of all prefixes, with the lowest precedence. */
  roots?: readonly Server[];
  /** Patterns without a server. */
  unserved?: readonly string[];
}

/** Routes by the longest matching prefix. */
export function createPrefixRouting<Server extends Routed>(
  servers: readonly Server[],
  { roots = [], unserved = [] }: OtherRoutes<Server> = {},
): FindServers<Server> {
  const byPattern = new Map<string, readonly Server[]>();
  for (const server of servers) {
    for (const pattern of server.prefixes)
      byPattern.set(pattern, [...(byPattern.get(pattern) ?? []), server]);
  }
  for (const pattern of unserved) byPattern.set(pattern, []);
  const fallback: readonly Server[] = byPattern.get('*') ?? [];
  // Length of the longest base: a prefix may have a thousand segments, and no pattern matches a longer base.
  const longest = [...byPattern.keys()].reduce((most, { length }) => Math.max(most, length - '.*'.length), 0);

  function serversOf(prefix: string): readonly Server[] {
    const exact = byPattern.get(prefix);
    if (exact) return exact;
    for (let end = prefix.lastIndexOf('.', longest); end > 0; end = prefix.lastIndexOf('.', end - 1)) {
      const derived = byPattern.get(`${prefix.slice(0, end)}.*`);
      if (derived) return derived;
    }
    return fallback;
  }

  return function findServers({ prefix, key }) {
    const own = serversOf(prefix);
    // The key of a bare prefix is that of its prefix record, which a repository does not hold.
    const isHeldElsewhere = key.startsWith('0.') && !own.every(holdsPrefixRecords);
    if (!prefix.startsWith('0.') && !isHeldElsewhere) return own;
    const isPrefixRecord = key.startsWith(`${GLOBAL_PREFIX}/`) && !byPattern.has(GLOBAL_PREFIX);
    const holders = isPrefixRecord
      ? [...serversOf(key.slice(GLOBAL_PREFIX.length + 1)), ...fallback]
      : serversOf(isHeldElsewhere ? GLOBAL_PREFIX : prefix);
    return [...new Set([...holders, ...roots])].filter(holdsPrefixRecords);
  };
}

/**
 * Creates a function that returns whether a key has a server, by its longest matching pattern. With roots, which plugins add
 * later, each key without a pattern has one elsewhere.
 */
export function createIsServed(
  servers: readonly Routed[],
  { roots, unserved }: Required<OtherRoutes<Routed>>,
): (key: string) => boolean {
  const none: Routed = { prefixes: unserved };
  const findServers = createPrefixRouting([...servers, none]);
  return (key) => servers.length + roots.length > 0 && findServers(refOfKey(key))[0] !== none;
}

const holdsPrefixRecords = ({ source }: Routed): boolean => source?.holdsPrefixRecords ?? true;

const keepsCase = ({ source }: Routed): boolean => source?.keepsCase ?? false;

export type RefOf = (text: string) => HandleRef;

/** Creates the handle parser. A key keeps the suffix's case if `caseSensitive` is set or its server distinguishes it. */
export function createRefOf(servers: readonly Routed[], caseSensitive: boolean): RefOf {
  if (caseSensitive) return exactRef;
  if (!servers.some(keepsCase)) return foldedRef;
  const findServers = createPrefixRouting(servers);
  return (text) => {
    const handle = foldedRef(text);
    return findServers(handle).some(keepsCase) ? exactRef(text) : handle;
  };
}
