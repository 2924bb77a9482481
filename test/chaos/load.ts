// Runs readers of many handles, and writers that change and delete some of them, through any running proxy.
import { Agent, request } from 'node:http';
import type { Asked, Question } from '../support/ask.js';
import { WRITE_HEADERS } from '../support/demo-writes.js';
import type { Judge } from './judge.js';
import type { Ledger } from './ledger.js';
import type { Published } from './published.js';
import type { Random } from './random.js';
import { CALM, UNKNOWN, WRITTEN, recordOf } from './records.js';
import type { World } from './world.js';

export interface LoadDeps {
  published: Published;
  world: World;
  ledger: Ledger;
  judge: Judge;
  random: Random;
}

const READERS = 8;
const WRITERS = 2;
/**
 * A reader or writer goes on before the answer, so that requests reach a frozen proxy during the whole freeze, and
 * the others meanwhile.
 */
const WAIT_MS = 500;
/** Pause between reads, for a load that a small, shared machine can handle. */
const READ_PAUSE_MS = 4;
const WRITE_PAUSE_MS = 25;
/** Client timeout, longer than any timeout of the proxy. */
const PATIENCE_MS = 15_000;
/**
 * Pause in writes to a handle after an unknown outcome, because a slow upstream may still execute the write.
 */
const UNKNOWN_REST_MS = 4000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Writer {
  own: string[];
  /** Time (ms) before which a handle must not be written again. */
  resting: Map<string, number>;
}

/** Starts the load, and returns a function that stops it and waits for in-flight requests. */
export function startLoad(deps: LoadDeps): () => Promise<void> {
  let isRunning = true;
  const agent = new Agent({ keepAlive: true });
  const again = async (work: () => Promise<void>, pauseMs: number): Promise<void> => {
    const pending = new Set<Promise<void>>();
    while (isRunning) {
      const working = work().finally(() => pending.delete(working));
      pending.add(working);
      await Promise.race([working, pause(WAIT_MS)]);
      await pause(pauseMs);
    }
    await Promise.all(pending);
  };
  const running = Promise.all([
    ...Array.from({ length: READERS }, () => again(() => readOne(deps, agent), READ_PAUSE_MS)),
    ...Array.from({ length: WRITERS }, (_, at) => {
      const own = WRITTEN.filter((_handle, index) => index % WRITERS === at);
      const writer = { own, resting: new Map<string, number>() };
      return again(() => writeOne(deps, writer, agent), WRITE_PAUSE_MS);
    }),
  ]);
  return async () => {
    isRunning = false;
    await running;
    agent.destroy();
  };
}

/** Queries that select at least the checked values of a record. */
const QUERIES = ['', '', '', '?index=1&index=2', '?type=URL&type=DESC', '?pretty'];

async function readOne({ world, ledger, judge, random }: LoadDeps, agent: Agent): Promise<void> {
  const lives = world.lives();
  if (lives.length === 0) return;
  const life = random.pick(lives);
  const handle = random.pick(random.next() < 0.5 ? CALM : random.next() < 0.9 ? WRITTEN : UNKNOWN);
  const spelled = random.next() < 0.2 ? handle.toLowerCase() : handle;
  // With a login, the response also has private values, for this caller only.
  const hasLogin = random.next() < 0.05;
  const read = { handle, life, askedAt: Date.now(), sizeBefore: ledger.size(handle) };
  const target = `/api/handles/${spelled}${random.pick(QUERIES)}`;
  const headers = hasLogin ? { Authorization: WRITE_HEADERS.Authorization } : {};
  try {
    const answer = await send(life.url + target, agent, { headers });
    if (!hasLogin) judge.answered(read, answer);
  } catch (error) {
    // A request with a login is forwarded, so an aborting upstream also breaks the client's connection.
    if (!hasLogin) judge.broke(read, error);
  }
}

async function writeOne(
  { world, ledger, judge, random, published }: LoadDeps,
  { own, resting }: Writer,
  agent: Agent,
): Promise<void> {
  const lives = world.lives();
  if (lives.length === 0) return;
  const life = random.pick(lives);
  const free = own.filter((name) => (resting.get(name) ?? 0) < Date.now());
  if (free.length === 0) return;
  const handle = random.pick(free);
  const isGone = random.next() < 0.15;
  const by = life.name;
  const startedAt = Date.now();
  const number = ledger.begin(handle, { isGone, startedAt, by });
  resting.set(handle, Infinity);
  judge.figures.writes++;
  const requestId = `${handle}/${number}`;
  const headers = { ...WRITE_HEADERS, 'X-Request-Id': requestId };
  const question: Question = isGone
    ? { method: 'DELETE', headers }
    : { method: 'PUT', headers, body: JSON.stringify(recordOf(handle, number)) };
  try {
    const { status } = await send(`${life.url}/api/handles/${handle}`, agent, question);
    // A 404 does not acknowledge a deletion, because an earlier deletion may have succeeded without a
    // response.
    if (status >= 300) throw new Error(`HTTP ${status}`);
    const acknowledgedAt = Date.now();
    ledger.acknowledged(handle, number, acknowledgedAt);
    published.acknowledged({ requestId, by, startedAt, acknowledgedAt });
    resting.delete(handle);
  } catch {
    judge.figures.writesOfUnknownEnd++;
    resting.set(handle, Date.now() + UNKNOWN_REST_MS);
  }
}

function send(url: string, agent: Agent, { method = 'GET', headers = {}, body }: Question): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.once('error', reject);
      answer.once('end', () => {
        const whole = Buffer.concat(chunks);
        const { statusCode: status = 0, headers: got, rawHeaders } = answer;
        resolve({ status, headers: got, rawHeaders, body: whole, text: whole.toString('utf8') });
      });
    });
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error('no answer in time')));
    sent.once('error', reject);
    sent.end(body);
  });
}
