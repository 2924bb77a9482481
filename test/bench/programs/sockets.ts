// Drives load over plain sockets: `node sockets.js WIRE PORT CALLERS SECONDS HANDLE ANSWER PAUSE_MS`. ANSWER
// is the correct response in Base64; each caller pauses for PAUSE_MS between requests.
import { type Wire, createCaller } from '../drive/callers-by-socket.js';
import { quantile } from '../statistics.js';

const [wire = 'http', port = '', callers = '', seconds = '', handle = '', expected = '', pauseMs = '0'] =
  process.argv.slice(2);
const right = Buffer.from(expected, 'base64');
const latencies: number[] = [];
let broken = 0;
let wrong = 0;
let isOver = false;
const begunAt = performance.now();

function call(): () => void {
  let askedAt = performance.now();
  const again = (): void => {
    if (Number(pauseMs) > 0) setTimeout(ask, Number(pauseMs));
    else ask();
  };
  const ask = (): void => {
    if (isOver) return;
    askedAt = performance.now();
    caller.ask();
  };
  const caller = createCaller({
    wire: wire as Wire,
    port: Number(port),
    handle,
    onAnswer: (answer) => {
      if (isOver) return;
      latencies.push(performance.now() - askedAt);
      if (!answer.equals(right)) wrong++;
      again();
    },
    onBroken: () => {
      if (!isOver) broken++;
      again();
    },
  });
  caller.ask();
  return caller.close;
}

const closers = Array.from({ length: Number(callers) }, call);
setTimeout(
  () => {
    isOver = true;
    const took = (performance.now() - begunAt) / 1000;
    for (const close of closers) close();
    const figures = {
      ...{ answers: latencies.length, seconds: took, badStatus: wrong, broken },
      ...{ p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) },
    };
    // Exits explicitly, because pauses may still be running.
    process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));
  },
  Number(seconds) * 1000,
);
