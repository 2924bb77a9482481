// Runs the bench's Handle server: `node upstream.js PORT CONTROL_PORT KIND COUNT PREFIX`. `demo` has COUNT
// records under PREFIX; `bare` responds to any handle as fast as possible with a record made from a template.
import { createServer } from 'node:http';
import { DEMO_PREFIXES, demoRecords } from '../../../src/dev-server/seed.js';
import { createControlledServer } from '../../support/demo-control.js';
import { yieldToOthers } from './priority.js';
import { PREFIX, answerOf, nameOf, valuesOf } from '../records.js';

const [port = '0', controlPort = '0', kind = 'demo', count = '0', prefix = PREFIX] = process.argv.slice(2);

interface Upstream {
  asked: () => number;
  askedFor: (handle: string) => number;
  delay: (ms: number) => void;
  /** Limits requests per second; 0 is unlimited. */
  limit: (perSecond: number) => void;
}

async function openDemo(): Promise<Upstream> {
  const seed = demoRecords(Date.now());
  for (let number = 1; number <= Number(count); number++) {
    seed[`${prefix}/${nameOf(number)}`] = valuesOf(nameOf(number));
  }
  const demo = createControlledServer({ seed, prefixes: [...DEMO_PREFIXES, prefix] });
  await demo.listen(Number(port));
  return {
    asked: () => demo.asked,
    askedFor: (handle) => demo.askedFor(handle),
    delay: (ms) => {
      demo.delay(ms);
    },
    limit: (perSecond) => {
      demo.limit(perSecond);
    },
  };
}

/** Matches handles created by `nameOf`, in any letter case. */
const FOUND = new RegExp(`^${PREFIX}/H`, 'i');

async function openBare(): Promise<Upstream> {
  const [before = '', between = '', after = ''] = answerOf('\0').split('\\u0000');
  let asked = 0;
  const server = createServer((req, res) => {
    asked++;
    const [path = ''] = (req.url ?? '').split('?', 1);
    const handle = decodeURIComponent(path.slice('/api/handles/'.length));
    const name = handle.slice(PREFIX.length + 1);
    // Only handles under PREFIX exist; the prefix record is missing, and so adds nothing to redirects.
    const isFound = FOUND.test(handle);
    const body = isFound
      ? before + name + between + name + after
      : JSON.stringify({ responseCode: 100, handle });
    res.writeHead(isFound ? 200 : 404, [
      'Content-Type',
      'application/json;charset=utf-8',
      'Content-Length',
      `${body.length}`,
    ]);
    res.end(body);
  });
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((resolve) => server.listen(Number(port), '127.0.0.1', resolve));
  const cannot = (): never => {
    throw new Error('the bare upstream cannot do that');
  };
  return { asked: () => asked, askedFor: cannot, delay: cannot, limit: cannot };
}

const upstream = kind === 'bare' ? await openBare() : await openDemo();

/**
 * Executes `/?delay=500`, `/?limit=1000` or `/?yield`. Returns the number of requests so far, for
 * `/?askedFor=HANDLE` only those for this handle.
 */
function obey(asked: URLSearchParams): number {
  if (asked.has('delay')) upstream.delay(Number(asked.get('delay')));
  if (asked.has('limit')) upstream.limit(Number(asked.get('limit')));
  if (asked.has('yield')) yieldToOthers();
  const handle = asked.get('askedFor');
  return handle === null ? upstream.asked() : upstream.askedFor(handle);
}

createServer((req, res) => {
  res.end(String(obey(new URL(req.url ?? '/', 'http://localhost').searchParams)));
}).listen(Number(controlPort), '127.0.0.1');
