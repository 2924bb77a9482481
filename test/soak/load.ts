// Sends all kinds of client requests in a loop, mostly for new handles, to reveal leaks.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { Question } from '../support/ask.js';
import { WRITE_HEADERS, numberedBody } from '../support/demo-writes.js';

const CLIENTS = 6;
const RECORDS = 5000;
/** Queries that select parts of a record. */
const PARTS = ['', '?index=1', '?type=URL', '?pretty', '?callback=f', '?index=100&type=HS_ADMIN'];

export const NAMES = Array.from({ length: RECORDS }, (_, at) => `21.T11998/kept-${at}`);

export interface Load {
  counts: Record<string, number>;
  stop: () => Promise<void>;
}

type Deed = (at: number) => Promise<void>;

export function startLoad(url: string): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const send = (target: string, question: Question = {}): Promise<void> =>
    sendOn(agent, url + target, question);
  const deeds: Record<string, Deed> = {
    read: (at) => send(`/api/handles/${NAMES[at % RECORDS]!}${PARTS[at % PARTS.length]!}`),
    readAgain: (at) => send(`/api/handles/${NAMES[at % 10]!}`),
    otherSpelling: (at) => send(`/api/handles/${NAMES[at % RECORDS]!.toLowerCase()}?any=${at}`),
    unknown: (at) => send(`/api/handles/21.T11998/unknown-${at}`),
    redirect: (at) => send(`/${NAMES[at % RECORDS]!}`),
    page: (at) => send(`/${NAMES[at % RECORDS]!}?noredirect&any=${at}`),
    write: (at) => send(`/api/handles/${NAMES[at % RECORDS]!}`, put(numberedBody(at))),
    refusedWrite: (at) =>
      send(`/api/handles/21.T11998/mine-${at}`, {
        ...put(numberedBody(at)),
        headers: { Authorization: 'Basic eDp5' },
      }),
    withLogin: (at) => send(`/api/handles/${NAMES[at % RECORDS]!}`, { headers: WRITE_HEADERS }),
    v2Read: (at) => send(`/api/v2/handles/${NAMES[at % RECORDS]!}`, { headers: WRITE_HEADERS }),
    v2Write: (at) => send(`/api/v2/handles/${NAMES[at % RECORDS]!}`, put(v2Body(at))),
    v2Mint: (at) => send('/api/v2/handles/21.T11998', { ...put(v2Body(at)), method: 'POST' }),
    badRequest: (at) => send(`/api/handles/%zz${at}`),
    leaveEarly: (at) => leaveEarly(url, `/api/handles/21.T11998/left-${at}`),
  };
  const counts: Record<string, number> = {};
  let isRunning = true;
  const client = async (first: number): Promise<void> => {
    for (let at = first; isRunning; at += CLIENTS) {
      for (const [name, deed] of Object.entries(deeds)) {
        await deed(at);
        counts[name] = (counts[name] ?? 0) + 1;
      }
    }
  };
  const running = Promise.all(Array.from({ length: CLIENTS }, (_, at) => client(at)));
  // `stop` reports load failures.
  running.catch(() => undefined);
  return {
    counts,
    async stop() {
      isRunning = false;
      await running;
      agent.destroy();
    },
  };
}

const put = (body: string): Question => ({ method: 'PUT', headers: WRITE_HEADERS, body });

const v2Body = (at: number): string =>
  JSON.stringify([{ type: 'URL', parsed_data: `https://example.org/${at}` }]);

function sendOn(agent: Agent, url: string, { method = 'GET', headers = {}, body }: Question): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent }, (answer) => {
      answer.once('end', resolve).once('error', reject);
      answer.resume();
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

/** Sends a request and disconnects before the response. */
function leaveEarly(url: string, target: string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`, () => {
        socket.destroy();
      });
    });
    socket.once('error', reject).once('close', () => {
      resolve();
    });
  });
}
