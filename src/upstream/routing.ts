// Reads and writes of handles at the server that is responsible for each.
import type { Outcome } from '../handle/outcome.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/response-codes.js';
import type { UpstreamClient } from './client.js';
import { sumUsages } from './concurrency-limiter.js';
import type { FindServers } from './prefix-routing.js';
import type { RecordClient, RecordRead } from './record-client.js';
import type { RecordAnswer } from './reply.js';
import { type ReadReferred, referralIn } from './referral/referrals.js';

/** What a Handle server replies for a prefix that it does not serve (recording "resolve: handle of unknown prefix"). */
const MEMBERS = { responseCode: RESPONSE_CODE.notResponsible, message: "That prefix doesn't live here" };
const STATUS = 400;

const NO_SERVER: Outcome = { kind: 'refused', status: STATUS, members: MEMBERS, namesHandle: true };

const NO_ANSWER: RecordAnswer = {
  status: STATUS,
  responseCode: MEMBERS.responseCode,
  members: MEMBERS,
  body: JSON.stringify(MEMBERS),
  retryAfter: undefined,
  challenge: undefined,
};
const NO_RECORD: RecordRead = { ...NO_ANSWER, values: undefined };

interface ReadServer {
  reads: UpstreamClient;
}

interface RecordServer {
  records: RecordClient;
}

interface ReadRoutes<Server extends ReadServer> {
  servers: readonly Server[];
  findServers: FindServers<Server>;
  /** Has the records of all prefixes, where referrals are followed. */
  root?: Server | undefined;
  /** Reads a handle that no server is responsible for, where referrals are followed. */
  readReferred?: ReadReferred | undefined;
}

/** The reads that callers share, over all servers. */
export function routeReads<Server extends ReadServer>(routes: ReadRoutes<Server>): UpstreamClient {
  const { servers, findServers, root, readReferred } = routes;
  return {
    resolve(read) {
      const found = findServers(read.handle);
      const asking = askInTurn(found, {
        ask: ({ reads }) => reads.resolve(read),
        // A server that has the prefix 0.NA knows the records of few prefixes; the root knows all.
        isElsewhere: (answer) =>
          isNotServed(answer) ||
          referralIn(answer) !== undefined ||
          (answer.kind === 'not-found' && found.includes(root as Server)),
        otherwise: NO_SERVER,
      });
      if (readReferred === undefined || read.isUnreferred || !isReferable(read.handle)) return asking;
      return asking.then((outcome) =>
        isNotServed(outcome) || referralIn(outcome) ? readReferred(read) : outcome,
      );
    },
    detachLoads(key) {
      for (const { reads } of findServers(key)) reads.detachLoads(key);
    },
    detachLoadsUnder(prefix) {
      for (const { reads } of servers) reads.detachLoadsUnder(prefix);
    },
    usage: () => sumUsages(servers.map(({ reads }) => reads.usage())),
  };
}

const isNotServed = (outcome: Outcome): boolean =>
  outcome.kind === 'refused' && outcome.members['responseCode'] === RESPONSE_CODE.notResponsible;

/** Handles under `0.`, and those without a slash, are at the root itself. */
const isReferable = (handle: string): boolean => handle.indexOf('/') > 0 && !handle.startsWith('0.');

/** The requests of one caller for a handle of these servers. A write is sent to one server only. */
export function recordsAt(servers: readonly RecordServer[]): RecordClient {
  const nowhere = (): Promise<RecordAnswer> => Promise.resolve(NO_ANSWER);
  const first = servers[0]?.records;
  return {
    get: (handle, options) =>
      askInTurn(servers, {
        ask: ({ records }) => records.get(handle, options),
        isElsewhere: ({ responseCode }) => isElsewhere(responseCode),
        otherwise: NO_RECORD,
      }),
    put: first?.put ?? nowhere,
    putValues: first?.putValues ?? nowhere,
    remove: first?.remove ?? nowhere,
    list: first?.list ?? nowhere,
  };
}

interface Asking<Server, Answer> {
  ask: (server: Server) => Promise<Answer>;
  /** Whether the server says that it is not responsible. */
  isElsewhere: (answer: Answer) => boolean;
  /** The answer where there is no server. */
  otherwise: Answer;
}

/** The answer of the first server that is responsible, else that of the last. */
function askInTurn<Server, Answer>(
  servers: readonly Server[],
  asking: Asking<Server, Answer>,
): Promise<Answer> {
  const [only] = servers;
  return only !== undefined && servers.length === 1 ? asking.ask(only) : askEach(servers, asking);
}

async function askEach<Server, Answer>(
  servers: readonly Server[],
  { ask, isElsewhere, otherwise }: Asking<Server, Answer>,
): Promise<Answer> {
  let answer = otherwise;
  for (const server of servers) {
    answer = await ask(server);
    if (!isElsewhere(answer)) break;
  }
  return answer;
}
