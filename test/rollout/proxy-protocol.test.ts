// HAProxy in mode tcp in front of the proxy, with both versions of the PROXY protocol, and the page about it.
import '../support/real-sockets.js';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberedBody } from '../support/demo-writes.js';
import { exampleText } from '../support/examples.js';
import { freePort } from '../support/free-port.js';
import { itWithProgram } from '../support/programs.js';
import { exchange, openSocket, pipelineOn } from '../support/raw-socket.js';
import { walkThrough } from '../support/walk-through.js';

const demo = await startDemoServer();
const page = exampleText('proxy-protocol.md');
const PATH = '/api/handles/21.T11998/page';

/** Starts the program with the variables of the page, and a limit by address that logs it. */
async function startByPage(env: Record<string, string> = {}): Promise<BuiltProxy> {
  const [, from = ''] = /export PROXY_PROTOCOL_FROM=(\S+)/.exec(page) ?? [];
  const rule = { name: 'seen', limit: { perSecond: 10_000 }, log: true };
  const given = { UPSTREAM_URL: demo.url, TRAFFIC_RULES: JSON.stringify([rule]) };
  return startBuiltProxy({ ...given, PROXY_PROTOCOL_FROM: from, ...env });
}

/** Starts HAProxy with the example of the page, and returns the URL of its listener. */
async function startHaproxy({ url, adminUrl }: BuiltProxy, version: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-'));
  const port = await freePort();
  const [, example = ''] = /^```haproxy\n([^]*?)^```$/m.exec(page) ?? [];
  const backend = example
    .replace('bind :80', `bind 127.0.0.1:${port}`)
    .replace('send-proxy-v2', version)
    .replace('port 9090', `port ${new URL(adminUrl).port}`)
    .replace('127.0.0.1:8080', new URL(url).host);
  const defaults = 'defaults\n    timeout client 60s\n    timeout server 60s\n    timeout connect 3s\n';
  writeFileSync(join(folder, 'haproxy.cfg'), defaults + backend);
  const child: ChildProcess = spawn('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], {
    stdio: 'ignore',
  });
  onTestFinished(async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true });
  });
  const front = `http://127.0.0.1:${port}`;
  const statusNow = () =>
    ask(front, '/robots.txt').then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(statusNow).toBe(200);
  return front;
}

const addresses = (proxy: BuiltProxy): Set<unknown> =>
  new Set(
    proxy
      .logs()
      .filter(({ msg, handle }) => msg === 'traffic rule matched' && String(handle).startsWith('21.T11998/'))
      .map(({ address }) => address),
  );

describe.each(['send-proxy', 'send-proxy-v2', 'send-proxy-v2 proxy-v2-options crc32c,unique-id'])(
  'HAProxy in mode tcp with %s',
  (version) => {
    itWithProgram('haproxy', 'passes the addresses of its clients, reads and writes', async () => {
      const proxy = await startByPage();
      const front = await startHaproxy(proxy, version);
      for (const client of ['127.0.0.5', '127.0.0.6']) {
        const send = pipelineOn(await openSocket(front, client));
        const get = `GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`;
        const body = numberedBody(7);
        const headers = { Host: 'x', ...WRITE_HEADERS, 'Content-Length': String(Buffer.byteLength(body)) };
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
        const put = ['PUT /api/handles/21.T11998/through HTTP/1.1', ...lines, '', body].join('\r\n');
        const statuses = await Promise.all([send(get), send(get), send(put), send(get)]);
        expect([200, 201]).toContain(statuses[2].status);
        expect(statuses.map(({ status }) => status).filter((_, at) => at !== 2)).toEqual([200, 200, 200]);
      }
      await expect.poll(() => addresses(proxy)).toEqual(new Set(['127.0.0.5', '127.0.0.6']));
    });
  },
);

describe('page “A TCP load balancer in front”', () => {
  itWithProgram('curl', 'shows the actual output of each command', async () => {
    const proxy = await startByPage();
    const [, commands = ''] = page.split('## Try it');
    expect(await walkThrough(commands, { PROXY: proxy.url })).toBe(2);
  });

  it('a direct client gets no response, and metrics say why', async () => {
    const proxy = await startByPage();
    expect(await exchange(proxy.url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')).toEqual({
      answers: [],
      closed: true,
    });
    const { text } = await ask(proxy.adminUrl, '/metrics');
    expect(text).toContain('handle_proxy_proxy_protocol_rejections_total{reason="invalid"} 1');
  });
});
