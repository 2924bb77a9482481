// Varnish in front of two instances: what it serves after an acknowledged write, and writes while it does not respond.
import '../support/real-sockets.js';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { START_TIMEOUT_MS, startBuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { exampleText } from '../support/examples.js';
import { freePort } from '../support/free-port.js';
import { gate } from '../support/gate.js';
import { itWithProgram } from '../support/programs.js';
import { value } from '../support/leads.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { History, percentile, report } from '../support/staleness.js';
import { isWhole } from '../support/thorough.js';

const demo = await startDemoServer();
const READS = isWhole ? 20_000 : 4000;
const WRITES = 80;
const TIMEOUT_MS = 300_000;
const HANDLES = Array.from({ length: 20 }, (_, at) => `21.T11998/front-${at}`);
const HANDLE = HANDLES[0]!;
const PATH = `/api/handles/${HANDLE}`;

interface Varnish {
  url: string;
  signal: (name: NodeJS.Signals) => void;
  count: (name: string) => number;
}

/** Returns the example with a round robin of backends. */
function vclFor(backends: readonly string[]): string {
  const [example, names] = [exampleText('varnish.vcl'), backends.map((_, at) => `instance${at}`)];
  const declared = backends.map((host, at) => {
    const { hostname, port } = new URL(host);
    return `backend ${names[at] ?? ''} { .host = "${hostname}"; .port = "${port}"; }`;
  });
  const adding = names.map((name) => `all.add_backend(${name});`).join(' ');
  const director = `import directors;\nsub vcl_init { new all = directors.round_robin(); ${adding} }`;
  const choice = 'sub vcl_recv { set req.backend_hint = all.backend(); }';
  const vcl = example.replace(/^backend proxy \{[^}]*\}/m, [...declared, director, choice].join('\n'));
  expect(vcl).not.toBe(example);
  return vcl;
}

/** Starts Varnish and waits until it accepts connections; it ends with the test. */
async function startVarnish(port: number, vcl: string): Promise<Varnish> {
  const folder = mkdtempSync(join(tmpdir(), 'varnish-'));
  writeFileSync(join(folder, 'front.vcl'), vcl);
  const place = ['-n', join(folder, 'run')];
  const args = ['-F', '-j', 'none', ...place, '-a', `127.0.0.1:${port}`, '-f', join(folder, 'front.vcl')];
  // Its usual 5 s are less than a slow machine may leave a connection without a request.
  const limits = ['-s', 'malloc,64m', '-p', 'timeout_idle=300'];
  const child: ChildProcess = spawn('varnishd', [...args, ...limits], {
    detached: true,
    stdio: 'ignore',
  });
  // The group includes the process that serves requests.
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-(child.pid ?? 0), name);
    } catch {
      // The group has ended.
    }
  };
  onTestFinished(async () => {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    signal('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  const statusNow = () =>
    ask(url, '/robots.txt').then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(statusNow, { timeout: START_TIMEOUT_MS }).toBe(200);
  const count = (name: string): number =>
    Number(
      /\s(\d+)\s/.exec(
        spawnSync('varnishstat', [...place, '-1', '-f', name], { encoding: 'utf8' }).stdout,
      )?.[1],
    );
  return { url, signal, count };
}

const frontEnv = (port: number): Record<string, string> => ({
  UPSTREAM_URL: demo.url,
  HTTP_SHARED_MAX_AGE: '1d',
  FRONTS_URLS: `http://127.0.0.1:${port}`,
});

async function startOne(env: Record<string, string> = {}) {
  demo.put(HANDLE, numbered(0));
  const port = await freePort();
  const proxy = await startBuiltProxy({ ...frontEnv(port), ...env });
  const varnish = await startVarnish(port, vclFor([proxy.url]));
  const isEmptied = () => proxy.output().includes('it confirms bans');
  await expect.poll(isEmptied, { timeout: START_TIMEOUT_MS }).toBe(true);
  return { proxy, varnish, port };
}

/** Reads until the response is a hit in Varnish, whose X-Varnish then has two numbers. */
async function readStored(url: string, path: string): Promise<Asked> {
  let last: Asked | undefined;
  const isHit = async (): Promise<boolean> => {
    last = await ask(url, path);
    return last.headers['x-varnish']?.includes(' ') === true;
  };
  await expect.poll(isHit, { timeout: START_TIMEOUT_MS, interval: 200 }).toBe(true);
  return last!;
}

describe('Varnish in front of two instances on one Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    return () => redis.stop();
  });

  itWithProgram(
    'varnishd',
    `serves no older record after an acknowledgement, in ${READS} reads of records and redirects`,
    async () => {
      for (const handle of HANDLES) demo.put(handle, numbered(0));
      const port = await freePort();
      const env = { ...frontEnv(port), REDIS_URL: redis.url };
      const proxies = await Promise.all([startConnectedProxy(env), startConnectedProxy(env)]);
      const varnish = await startVarnish(port, vclFor(proxies.map(({ url }) => url)));
      const agent = new Agent({ keepAlive: true });
      onTestFinished(() => {
        agent.destroy();
      });
      const history = new History();
      let written = 0;
      const isOngoing = (): boolean => history.reads < READS || written < WRITES;
      async function readMany(first: number): Promise<void> {
        for (let turn = first; isOngoing(); turn++) {
          const handle = HANDLES[turn % HANDLES.length]!;
          const path = turn % 3 === 0 ? `/${handle}` : `/api/handles/${handle}`;
          await history.read(handle, async () => numberIn(await ask(varnish.url, path, { agent })));
        }
      }
      async function writeMany(own: readonly string[], writer: number): Promise<void> {
        for (let made = 1; isOngoing(); made++) {
          for (const handle of own) {
            const { url } = proxies[(made + writer) % 2]!;
            const { status, text } = await putNumbered(url, `/api/handles/${handle}`, made);
            expect(status, text).toBe(200);
            history.acknowledged(handle, made);
            written++;
            await history.read(handle, async () => numberIn(await ask(varnish.url, `/${handle}`, { agent })));
          }
        }
      }
      const writers = [0, 1, 2, 3].map((writer) =>
        writeMany(
          HANDLES.filter((_, at) => at % 5 === writer),
          writer,
        ),
      );
      await Promise.all([...writers, ...[0, 5, 10, 15, 18, 19].map(readMany)]);
      const delays = history.delays();
      report('Varnish before 2 instances: old record still shown after the acknowledgement', delays);
      const [hits, misses] = [varnish.count('MAIN.cache_hit'), varnish.count('MAIN.cache_miss')];
      process.stdout.write(`| reads ${history.reads} | hits ${hits} | misses ${misses} |\n`);
      expect(delays).toHaveLength(written);
      expect(percentile(delays, 1)).toBe(0);
      expect(hits).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
});

/** Relays GET requests, and holds the first response for the record until it is released. */
async function startRelay(target: string) {
  const [arrived, released] = [gate(), gate()];
  let isHolding = true;
  const relay = async (path: string, res: ServerResponse): Promise<void> => {
    const { status, rawHeaders, body } = await ask(target, path);
    if (path === PATH && isHolding) {
      isHolding = false;
      arrived.open();
      await released.opened;
    }
    res.writeHead(status, rawHeaders).end(body);
  };
  const server = createServer((req, res) => void relay(req.url ?? '', res));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, held: arrived.opened, release: released.open };
}

describe('Varnish in front of one instance', () => {
  itWithProgram('varnishd', 'does not store a response that is on its way during a write', async () => {
    demo.put(HANDLE, numbered(0));
    const port = await freePort();
    const proxy = await startBuiltProxy(frontEnv(port));
    await ask(proxy.url, PATH);
    const relay = await startRelay(proxy.url);
    const varnish = await startVarnish(port, vclFor([relay.url]));
    const reading = ask(varnish.url, PATH);
    await relay.held;
    const written = () => putNumbered(proxy.url, PATH, 1).then(({ status }) => status);
    await expect.poll(written, { timeout: START_TIMEOUT_MS }).toBe(200);
    const waiting = ask(varnish.url, PATH);
    relay.release();
    expect(numberIn(await reading), 'the read began before the write').toBe(0);
    expect(numberIn(await waiting)).toBe(1);
    expect(numberIn(await ask(varnish.url, PATH))).toBe(1);
  });

  itWithProgram(
    'varnishd',
    'bans what a purge, and an authoritative read of a changed record, name',
    async () => {
      const { proxy, varnish } = await startOne();
      for (const path of [PATH, `/${HANDLE}`]) expect(numberIn(await readStored(varnish.url, path))).toBe(0);
      demo.put(HANDLE, numbered(1));
      await ask(proxy.url, `${PATH}?auth=true`);
      for (const path of [PATH, `/${HANDLE}`]) expect(numberIn(await readStored(varnish.url, path))).toBe(1);
      demo.put(HANDLE, numbered(2));
      const body = JSON.stringify({ prefix: '21.T11998/fr' });
      const headers = { 'Content-Type': 'application/json' };
      expect((await ask(proxy.adminUrl, '/purge', { method: 'POST', headers, body })).status).toBe(200);
      for (const path of [PATH, `/${HANDLE}`]) expect(numberIn(await readStored(varnish.url, path))).toBe(2);
      expect((await ask(varnish.url, PATH)).headers['surrogate-key']).toBeUndefined();
    },
  );

  itWithProgram('varnishd', 'bans redirects that a change of the global namespace affects', async () => {
    const { proxy, varnish } = await startOne();
    expect(numberIn(await readStored(varnish.url, `/${HANDLE}`))).toBe(0);
    const location = '<location href="https://global.example.org/" weight="Infinity"/>';
    demo.put('21.T11998/global', [value(1, '10320/loc', `<locations>${location}</locations>`)]);
    const namespace = '<namespace><locs>21.T11998/global</locs></namespace>';
    demo.put('0.NA/0.NA', [value(1, 'HS_NAMESPACE', namespace)]);
    onTestFinished(() => {
      demo.remove('0.NA/0.NA');
    });
    expect((await ask(proxy.url, '/api/handles/0.NA/0.NA?auth=true')).status).toBe(200);
    expect((await ask(varnish.url, `/${HANDLE}`)).headers.location).toBe('https://global.example.org/');
  });

  itWithProgram('varnishd', 'is emptied after it was frozen during a write, which is 503', async () => {
    const { proxy, varnish } = await startOne();
    await readStored(varnish.url, PATH);
    varnish.signal('SIGSTOP');
    const { status, text } = await putNumbered(proxy.url, PATH, 1);
    expect([status, text]).toEqual([503, expect.stringContaining('cannot be confirmed')]);
    expect(numberIn(await ask(proxy.url, PATH))).toBe(1);
    varnish.signal('SIGCONT');
    const shown = async (): Promise<number> => numberIn(await ask(varnish.url, PATH));
    await expect.poll(shown, { timeout: START_TIMEOUT_MS }).toBe(1);
    const written = () => putNumbered(proxy.url, PATH, 2).then((answer) => answer.status);
    await expect.poll(written, { timeout: START_TIMEOUT_MS }).toBe(200);
    expect(await shown()).toBe(2);
  });

  itWithProgram('varnishd', 'does not fail writes while it is gone, with `accept`', async () => {
    const { proxy, varnish } = await startOne({ FRONTS_UNCONFIRMED_WRITES: 'accept' });
    varnish.signal('SIGKILL');
    const gone = () =>
      ask(varnish.url, PATH).then(
        () => false,
        () => true,
      );
    await expect.poll(gone, { timeout: START_TIMEOUT_MS }).toBe(true);
    expect((await putNumbered(proxy.url, PATH, 1)).status).toBe(200);
    const { text } = await ask(proxy.adminUrl, '/metrics');
    expect(text).toMatch(/handle_proxy_front_bans_total\{result="unconfirmed"\} [1-9]/);
    expect(proxy.output()).toContain('cache in front does not confirm bans');
  });
});
