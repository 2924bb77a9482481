// Requests hits on a fixed schedule: `node scheduled-hits.js PORT HANDLE ANSWER RATE SECONDS WIRE`. ANSWER is the
// correct response in Base64; WIRE is `http`, or `http-close` for a new connection per hit. Sends each hit when it is due, even if earlier hits are pending, and measures
// latency from the due time.
import { setTimeout as pause } from 'node:timers/promises';
import { type Caller, createCaller } from '../drive/callers-by-socket.js';
import { quantile } from '../statistics.js';

const [port = '', handle = '', expected = '', rate = '', seconds = '', wire = ''] = process.argv.slice(2);
/** Maximum latency of a hit that counts as in time. */
const IN_TIME_MS = 50;
/** Wait for responses after the last hit was due. */
const GRACE_MS = 2000;
const right = Buffer.from(expected, 'base64');
const everyMs = 1000 / Number(rate);
const count = Number(rate) * Number(seconds);

/** A connection with one hit in flight. */
interface Connection {
  caller: Caller;
  dueAt: number;
}

const idle: Connection[] = [];
const waiting = new Set<Connection>();
const latencies: number[] = [];
let [broken, wrong] = [0, 0];

function open(): Connection {
  const settle = (isKept: boolean): void => {
    waiting.delete(connection);
    if (isKept) idle.push(connection);
  };
  const caller = createCaller({
    wire: wire === 'http-close' ? wire : 'http',
    port: Number(port),
    handle,
    onAnswer: (answer) => {
      latencies.push(performance.now() - connection.dueAt);
      if (!answer.equals(right)) wrong++;
      settle(true);
    },
    onBroken: () => {
      latencies.push(Infinity);
      broken++;
      settle(false);
    },
  });
  const connection = { caller, dueAt: 0 };
  return connection;
}

function send(dueAt: number): void {
  const connection = idle.pop() ?? open();
  connection.dueAt = dueAt;
  waiting.add(connection);
  connection.caller.ask();
}

const begunAt = performance.now();
for (let sent = 0; sent < count;) {
  const dueMs = begunAt + sent * everyMs - performance.now();
  if (dueMs > 0) await pause(dueMs);
  for (; sent < count && begunAt + sent * everyMs <= performance.now(); sent++)
    send(begunAt + sent * everyMs);
}
const graceEndsAt = performance.now() + GRACE_MS;
while (waiting.size > 0 && performance.now() < graceEndsAt) await pause(1);
const endedAt = performance.now();
const answers = latencies.length - broken;
// Counts pending hits with their latency so far, a lower bound. Hits on broken connections count as infinite.
const unanswered = [...waiting].map(({ dueAt }) => endedAt - dueAt);
const all = [...latencies, ...unanswered];
const figures = {
  ...{
    answers,
    unanswered: unanswered.length,
    seconds: (endedAt - begunAt) / 1000,
    badStatus: wrong,
    broken,
  },
  ...{ p50Ms: timeOf(0.5), p99Ms: timeOf(0.99) },
  inTimePercent: (100 * latencies.filter((ms) => ms <= IN_TIME_MS).length) / count,
};
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));

/** Limits a quantile to the total duration, because JSON has no Infinity. */
function timeOf(share: number): number {
  return Math.min(quantile(all, share), endedAt - begunAt);
}
