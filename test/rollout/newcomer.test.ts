// The section "Put it in front of your server" of README.md, and the guide "In front of a Handle.Net server, step by
// step", run against a self-signed server.
import '../support/real-sockets.js';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { ROOT, startBuiltProxy, startListeningProxy } from '../support/built-proxy.js';
import { readDocument, shellBlocks } from '../support/markdown.js';
import { createShell, stepsOf } from '../support/walk-through.js';

const steps = stepsOf(exampleText('before-a-handle-server.md'));

const certificate = await createCertificate();
const demo = await startDemoServer({ tls: certificate });

describe('section “Put it in front of your server” of README.md', () => {
  test('leads from the certificate that the probe prints to a read', async () => {
    const [probe = '', start = ''] = shellBlocks(readDocument('README.md')).filter((block) =>
      block.includes('export UPSTREAM_'),
    );
    const shell = createShell();
    const said = await shell(
      probe
        .replace(/^npm ci && npm run build$/m, '')
        .replace('https://handle.example.org:8000', demo.url)
        .replace('dist/main.js', join(ROOT, 'dist/main.js')),
    );
    const [, pin = ''] = /^ *To pin it +UPSTREAM_FINGERPRINT=(\S+)$/m.exec(said) ?? [];
    expect(start).toContain('export UPSTREAM_FINGERPRINT=');
    expect(start).toContain('node dist/main.js\n');
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, UPSTREAM_FINGERPRINT: pin });
    const [read = ''] = /^curl .*$/m.exec(start) ?? [];
    const answer = await shell(
      read.replace('http://localhost:8080', proxy.url).replace('20.500.12345/abc', '21.T11998/page'),
    );
    expect(answer).toContain('Cache-Status: handle-resolver-proxy; fwd=miss');
  });
});

describe('guide “In front of a Handle.Net server, step by step”', () => {
  test('shows the output of every step', async () => {
    const here = {
      HANDLE_SERVER: demo.url,
      HANDLE: '21.T11998/page',
      LOGIN: '300%3A21.T11998/USER01:password',
    };
    const proxy = await startBuiltProxy({
      UPSTREAM_URL: demo.url,
      UPSTREAM_FINGERPRINT: certificate.fingerprint,
    });
    const shell = createShell();
    for (const { commands, shown } of steps) {
      if (commands.includes('npm start')) {
        // The proxy already runs with the fingerprint that the guide's command printed.
        expect(await shell('echo $FINGERPRINT')).toBe(`${certificate.fingerprint}\n`);
        continue;
      }
      const said = await shell(commands.replace('http://localhost:9090', proxy.adminUrl));
      if (shown !== undefined) expect(said, commands).toMatch(shown);
      if (commands.includes('export HANDLE_SERVER=')) {
        const set = Object.entries({ ...here, PROXY: proxy.url }).map(
          ([name, value]) => `export ${name}=${value}`,
        );
        await shell(set.join('\n'));
      }
    }
    expect(steps.filter(({ shown }) => shown !== undefined).length).toBeGreaterThan(8);
  });

  test('explains the cause and the remedy that are logged when the fingerprint is missing', async () => {
    const proxy = await startListeningProxy({ UPSTREAM_URL: demo.url });
    const answer = await fetch(`${proxy.url}/api/handles/21.T11998/abc`);
    expect(answer.status).toBe(502);
    const logged = (): unknown => proxy.logs().find(({ msg }) => msg === 'server is failing');
    await expect.poll(logged).toMatchObject({
      cause: expect.stringContaining('SELF_SIGNED_CERT') as string,
      remedy: 'set upstream.caFile or upstream.fingerprint',
    });
    expect(exampleText('before-a-handle-server.md')).toContain('SELF_SIGNED_CERT');
  });
});
