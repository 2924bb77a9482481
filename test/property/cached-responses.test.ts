// Prepared responses are identical to uncached ones for random requests.
import { connect } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { fixed } from '../support/fixed.js';
import { records, redirects, stepsIn } from '../support/prepared-responses.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { mockUpstream } from '../support/upstream.js';
import { rounds } from '../support/property-rounds.js';

useNock();

/**
 * Returns the received bytes for the request and its repetition on one connection, without `Date`, which uses
 * the system clock.
 */
function raw(
  proxy: Proxy,
  { method, target, headers }: { method: string; target: string; headers: string[] },
): Promise<string> {
  const asked = [
    `${method} ${target} HTTP/1.1`,
    'Host: proxy.test',
    'X-Request-Id: one-for-both',
    ...headers.filter((line) => !line.startsWith('Connection')),
  ];
  const twice = [...asked, '', ...asked, 'Connection: close', '', ''].join('\r\n');
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('error', reject);
    socket.once('end', () => {
      resolve(
        Buffer.concat(chunks)
          .toString('latin1')
          .replace(/^Date: .*\r\n/gm, ''),
      );
    });
    socket.write(twice, 'latin1');
  });
}

describe('prepared responses', () => {
  const title = 'have the same bytes as uncached responses: $name';
  test.each([records, redirects])(title, async ({ corner, answerOf }) => {
    // Both proxies draw the same random number; test/redirect/weighted.test.ts tests separate draws.
    vi.spyOn(Math, 'random').mockReturnValue(0.7);
    let compared = 0;
    let version = 0;
    mockUpstream((target) => answerOf(target, version));
    // Refresh-ahead is disabled, because it could run at different times in the two proxies.
    const settings = { HTTP_TRUSTED_PROXIES: 'loopback' };
    const constants = {
      cache: { refreshAhead: { minHits: 0 } },
      upstream: { breaker: { failures: 10_000 } },
    };
    const unprepared = { ...constants, http: { responseCache: { maxEntries: 0 } } };
    const hot = await startProxy({ ...settings, ...fixed(constants) });
    const long = await startProxy({ ...settings, ...fixed(unprepared) });
    await fc.assert(
      fc.asyncProperty(stepsIn(corner), async (sequence) => {
        for (const step of sequence) {
          if (step.kind === 'pass') for (const proxy of [hot, long]) proxy.pass(step.ms);
          else if (step.kind === 'change') version++;
          else {
            expect(await raw(hot, step)).toBe(await raw(long, step));
            compared++;
          }
        }
      }),
      { numRuns: rounds(12), endOnFailure: true },
    );
    expect(compared).toBeGreaterThan(20 * rounds(12));
  });
});
