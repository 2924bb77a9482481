// Sends one expensive request repeatedly until SIGTERM: `node hostile.js URL ROW CONNECTIONS`. Prints a line
// after the first response, and at the end, when no request is in flight, the responses by status.
import { Agent } from 'node:http';
import type { HostileFigures } from '../drive/drive.js';
import { ANSWERED, EXPENSIVE_REQUESTS, sizesOf } from '../../support/expensive-requests.js';
import { ask } from '../../support/ask.js';
import { yieldToOthers } from './priority.js';

const [url = '', name = '', connections = ''] = process.argv.slice(2);
const row = EXPENSIVE_REQUESTS[name];
if (row === undefined) throw new Error(`there is no expensive request ${name}`);
const { largest } = sizesOf(row);
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
let number = 0;
let isOver = false;
const figures: HostileFigures = { done: 0, refused: 0, busy: 0, wrong: 0 };

async function askAgain(): Promise<void> {
  while (!isOver) {
    const [target, question] = row?.request(largest, number++) ?? [''];
    const status = await ask(url, target, { ...question, agent }).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (total() === 0) process.stdout.write('begun\n');
    figures[kindOf(status)]++;
  }
}

const total = (): number => Object.values(figures).reduce((sum, count) => sum + count, 0);

/** Classifies a response; the status is undefined after a connection error. */
function kindOf(status: number | undefined): keyof HostileFigures {
  if (status === undefined) return 'wrong';
  if (status < 400) return 'done';
  if (status < 500 && ANSWERED.includes(status)) return 'refused';
  // 503 means that the proxy is overloaded.
  return status === 503 ? 'busy' : 'wrong';
}

yieldToOthers();
process.once('SIGTERM', () => {
  isOver = true;
});
await Promise.all(Array.from({ length: Number(connections) }, askAgain));
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));
