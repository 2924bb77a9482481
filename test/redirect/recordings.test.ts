// The proxy with the demo server redirects as HDLProxy did with a real Handle server.
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createControlledServer } from '../support/demo-control.js';
import { type Recording, replay } from '../support/recordings.js';
import { drawnByLot, redirectWaivers } from '../support/redirect-waivers.js';
import { startProxy } from '../support/proxy.js';

const fixture = new URL('../fixtures/hdl-proxy.json', import.meta.url);
const recordings = JSON.parse(readFileSync(fixture, 'utf8')) as Recording[];

/** Time to pass before a recording (ms), default 0. */
const WAITS: Readonly<Record<string, number>> = { 'cache: p-ttl2 after its ttl': 4000 };

/** Whether a recording changed the server directly; of the rest, only pages and redirects are replayed. */
const isChange = ({ secure, request }: Recording): boolean =>
  secure && ['PUT', 'DELETE'].includes(request.method);
const isRedirect = ({ request }: Recording): boolean => !/^\/api\//.test(request.path);
const replayed = recordings.filter((recording) => isChange(recording) || isRedirect(recording));

interface Led {
  status: number;
  location: string | undefined;
}

function ledBy({ status, headers }: { status: number; headers: string[] }): Led {
  const location = headers.find((line) => line.startsWith('location: '))?.slice('location: '.length);
  // HDLProxy sends an absolute URL for its own address; this proxy sends the path (RFC 9110 section 10.2.2).
  return { status, location: location && new URL(location, 'http://127.0.0.1:8080').href };
}

const recordedLed = ({ response: { status, headers } }: Recording): Led =>
  ledBy({ status, headers: headers.map(([name, value]) => `${name.toLowerCase()}: ${value}`) });

async function replayAll(): Promise<Map<string, Led>> {
  const demo = createControlledServer();
  onTestFinished(() => demo.close());
  const { url: upstreamUrl } = await demo.listen(0);
  const proxy = await startProxy({ UPSTREAM_URL: upstreamUrl });
  const answers = new Map<string, Led>();
  for (const recording of replayed) {
    proxy.pass(WAITS[recording.name] ?? 0);
    const baseUrl = isChange(recording) ? upstreamUrl : proxy.url;
    answers.set(recording.name, ledBy(await replay(recording, { baseUrl })));
  }
  return answers;
}

const redirects = replayed.filter(isRedirect);
const ledByNames = (names: string[], read: (name: string) => Led): Record<string, Led> =>
  Object.fromEntries(names.map((name) => [name, read(name)]));
const recorded = new Map(redirects.map((recording) => [recording.name, recordedLed(recording)]));

describe('recorded HDLProxy redirects', () => {
  test('are reproduced, except for the waivers', async () => {
    const answers = await replayAll();
    const waived = [...Object.keys(redirectWaivers), ...Object.keys(drawnByLot)];
    const held = redirects.map(({ name }) => name).filter((name) => !waived.includes(name));
    expect(held.length).toBeGreaterThan(75);
    expect(ledByNames(held, (name) => answers.get(name)!)).toEqual(
      ledByNames(held, (name) => recorded.get(name)!),
    );
    for (const name of Object.keys(redirectWaivers)) {
      expect(answers.get(name), `${name} no longer needs its waiver`).not.toEqual(recorded.get(name));
      expect(answers.get(name)?.status, name).toBeLessThan(500);
    }
    for (const name of Object.keys(drawnByLot)) {
      expect(answers.get(name)?.status).toBe(302);
      expect(['https://a.example.org/', 'https://b.example.org/']).toContain(answers.get(name)?.location);
    }
    expect(answers.get('loc: malformed XML falls back to URL?')).toEqual({
      status: 302,
      location: 'https://fallback.example.org/',
    });
  });

  test('include a recording for every waiver', () => {
    const waived = [...Object.keys(redirectWaivers), ...Object.keys(drawnByLot)];
    expect([...recorded.keys()]).toEqual(expect.arrayContaining(waived));
  });
});
