// Examples for web servers in front: the servers accept these files, and expose no admin endpoints and no
// smuggled responses.
import { writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, onTestFinished } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { examplePath } from '../support/examples.js';
import { FRONTS, FRONT_NAMES, NAME } from '../support/front-configs.js';
import { itWithProgram, runProgram } from '../support/programs.js';
import { type Front, folderWithCertificate, startFront } from '../support/tls-front.js';

const demo = await startDemoServer();

/** Sends raw bytes, and waits until the server responds or closes. */
async function sendRaw(port: number, bytes: string): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => undefined);
  onTestFinished(() => {
    socket.destroy();
  });
  await new Promise<void>((resolve) => {
    socket.once('data', () => {
      resolve();
    });
    socket.once('close', () => {
      resolve();
    });
    socket.write(bytes);
  });
}

describe.each(FRONT_NAMES)('web server example %s', (name) => {
  itWithProgram(name, 'is accepted without a warning', async () => {
    const place = { folder: await folderWithCertificate(), port: 1, plainPort: 2 };
    writeFileSync(
      join(place.folder, 'front.conf'),
      FRONTS[name].config({ ...place, backends: ['127.0.0.1:8080'] }),
    );
    const { code, output } = runProgram(name, FRONTS[name].check(place.folder));
    expect(output).not.toMatch(/\[warn(?:ing)?\]/i);
    expect(code, output).toBe(0);
  });

  itWithProgram(name, 'exposes only the public listener, and no admin endpoints', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, HTTP_TRUSTED_PROXIES: 'loopback' });
    const front = await startFront(name, new URL(proxy.url).host);
    for (const path of ['/metrics', '/stats', '/cache', '/readyz', '/healthz', '/server-status']) {
      const answer = await front.ask(path);
      expect([path, answer.status]).toEqual([path, 404]);
    }
    expect((await front.ask('/purge', { method: 'POST', body: '{"all":true}' })).status).toBe(404);
  });

  const LINE = 'PUT /api/handles/21.T11998/page HTTP/1.1\r\n';
  const HOST = `Host: ${NAME}\r\n`;
  const HIDDEN = `GET /api/handles/21.T11998/hidden HTTP/1.1\r\n${HOST}\r\n`;
  const CHUNKED = 'Transfer-Encoding: chunked\r\n';
  const AMBIGUOUS = [
    `${HOST}Content-Length: 4\r\n${CHUNKED}\r\n0\r\n\r\n${HIDDEN}`,
    `${HOST}Content-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    `${HOST}Content-Length: +0\r\n\r\n${HIDDEN}`,
    `${HOST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
    `${HOST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
    `${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
    `${HOST}X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
    `${HOST}${CHUNKED}\r\n1\r\nab\r\n0\r\n\r\n${HIDDEN}`,
    `${HOST}Connection: Content-Length\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  ];

  itWithProgram(name, 'returns no smuggled response to a different client', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, HTTP_TRUSTED_PROXIES: 'loopback' });
    const front = await startFront(name, new URL(proxy.url).host);
    for (const [at, ambiguous] of AMBIGUOUS.entries()) {
      await sendRaw(front.port, LINE + ambiguous);
      for (let asked = 0; asked < 3; asked++) {
        const { text } = await front.ask(`/api/handles/21.T11998/other-${at}-${asked}`);
        expect(JSON.parse(text)).toMatchObject({ handle: `21.T11998/other-${at}-${asked}` });
      }
    }
  });
});

/** Returns the `Location` of the response to a plain HTTP request. */
const redirectOf = ({ plainPort }: Front, path: string): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: plainPort, path, agent: false, headers: { Host: NAME } };
    get(options, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 301 ? answer.headers.location : undefined);
    }).once('error', reject);
  });

// Caddy redirects by default, so its file has no redirect rule.
describe.each(['nginx', 'apache2', 'haproxy'] as const)('plain HTTP in front of %s', (name) => {
  itWithProgram(name, 'is redirected to HTTPS with an unchanged path', async () => {
    const front = await startFront(name, '127.0.0.1:9');
    for (const path of ['/21.T1%2Fabc', '/api/handles/21.T1/a//b?index=1&type=A+B', '/21.T1/a%2525%C3%A4']) {
      expect(await redirectOf(front, path)).toBe(`https://${NAME}${path}`);
    }
  });
});

describe('Caddyfile', () => {
  itWithProgram('caddy', 'passes caddy fmt', () => {
    const { output } = runProgram('caddy', ['fmt', '--diff', examplePath('Caddyfile')]);
    expect(output).not.toMatch(/^[-+]/m);
  });
});
