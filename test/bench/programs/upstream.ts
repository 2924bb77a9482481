// The Handle server of the bench, a process of its own: `node upstream.js PORT CONTROL_PORT KIND COUNT PREFIX`.
// `demo` keeps COUNT records of PREFIX; `bare` answers any handle, as fast as it can, with a record made of a pattern.
import { createServer } from 'node:http';
import { DEMO_PREFIXES, demoRecords } from '../../handle-server/seed.js';
import { type DemoServer, createDemoServer } from '../../handle-server/server.js';
import { PREFIX, answerOf, nameOf, valuesOf } from '../records.js';

const [port = '0', controlPort = '0', kind = 'demo', count = '0', prefix = PREFIX] = process.argv.slice(2);

interface Upstream {
  asked: () => number;
  askedFor: (handle: string) => number;
  delay: (ms: number) => void;
  /** 0: no limit. */
  limit: (perSecond: number) => Promise<void>;
}

async function openDemo(): Promise<Upstream> {
  const seed = demoRecords(Date.now());
  for (let number = 1; number <= Number(count); number++) {
    seed[`${prefix}/${nameOf(number)}`] = valuesOf(nameOf(number));
  }
  const prefixes = [...DEMO_PREFIXES, prefix];
  const open = async (capacityPerSecond: number): Promise<DemoServer> => {
    const server = createDemoServer({ seed, prefixes, ...(capacityPerSecond > 0 && { capacityPerSecond }) });
    await server.listen(Number(port));
    return server;
  };
  let demo = await open(0);
  return {
    asked: () => demo.asked,
    askedFor: (handle) => demo.askedFor(handle),
    delay: (ms) => {
      demo.delay(ms);
    },
    // A demo server's capacity is fixed: another takes its place.
    limit: async (perSecond) => {
      await demo.close();
      demo = await open(perSecond);
    },
  };
}

async function openBare(): Promise<Upstream> {
  const [before = '', between = '', after = ''] = answerOf('\0').split('\\u0000');
  let asked = 0;
  const server = createServer((req, res) => {
    asked++;
    const name = (req.url ?? '').slice(`/api/handles/${PREFIX}/`.length);
    const body = before + name + between + name + after;
    res.writeHead(200, [
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

/** `/?delay=500`, `/?limit=1000`, `/?askedFor=HANDLE`; answers with the number of requests so far. */
async function obey(asked: URLSearchParams): Promise<number> {
  if (asked.has('delay')) upstream.delay(Number(asked.get('delay')));
  if (asked.has('limit')) await upstream.limit(Number(asked.get('limit')));
  const handle = asked.get('askedFor');
  return handle === null ? upstream.asked() : upstream.askedFor(handle);
}

createServer((req, res) => {
  void obey(new URL(req.url ?? '/', 'http://localhost').searchParams).then((number) =>
    res.end(String(number)),
  );
}).listen(Number(controlPort), '127.0.0.1');
