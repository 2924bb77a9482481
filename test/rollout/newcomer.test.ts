// The guide "In front of a Handle.Net server, step by step", run against a self-signed server.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { startBuiltProxy, startListeningProxy } from '../support/built-proxy.js';
import { createShell, stepsOf } from '../support/walk-through.js';

const steps = stepsOf(exampleText('before-a-handle-server.md'));

const certificate = await createCertificate();
const demo = await startDemoServer({ tls: certificate });

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
