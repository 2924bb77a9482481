// Sends one expensive request again and again: `node hostile.js URL ROW SECONDS CONNECTIONS`. Prints the answers.
import { Agent } from 'node:http';
import { EXPENSIVE_REQUESTS, sizesOf } from '../../support/expensive-requests.js';
import { ask } from '../../support/ask.js';
import { yieldToOthers } from './priority.js';

const [url = '', name = '', seconds = '', connections = ''] = process.argv.slice(2);
const row = EXPENSIVE_REQUESTS[name];
if (row === undefined) throw new Error(`there is no expensive request ${name}`);
const { largest } = sizesOf(row);
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const endsAt = performance.now() + Number(seconds) * 1000;
let number = 0;
let [answers, wrong] = [0, 0];

async function askAgain(): Promise<void> {
  while (performance.now() < endsAt) {
    const [target, question] = row?.request(largest, number++) ?? [''];
    const { status } = await ask(url, target, { ...question, agent });
    answers++;
    // 503: the proxy has too much to do.
    if (status >= 500 && status !== 503) wrong++;
  }
}

yieldToOthers();
const end = (): void => {
  process.stdout.write(`${JSON.stringify({ answers, wrong })}\n`, () => process.exit(0));
};
setTimeout(end, Number(seconds) * 1000);
await Promise.all(Array.from({ length: Number(connections) }, askAgain));
