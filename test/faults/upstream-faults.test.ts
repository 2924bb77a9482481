// Every fault of the Handle server: responses to readers and writers, upstream requests, recovery.
import '../support/real-sockets.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { numberIn, putNumbered } from '../support/demo-writes.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type Certificates, FAULTS, type FaultRow } from './fault-table.js';
import { type FaultyServer, startFaultyServer } from './faulty-server.js';

const HOUR = 3_600_000;
const RETRY_AFTER = 5000;
const fresh = '/api/handles/21.T11998/fresh';
const stale = '/api/handles/21.T11998/stale';
const never = '/api/handles/21.T11998/never';

/** Timeouts short enough for a late server, and long enough for a healthy response on a busy machine. */
const SHORT_TIMES = {
  UPSTREAM_STALE_AFTER: '600ms',
  UPSTREAM_TIMEOUT: '1500ms',
};

let certificates: Certificates;

beforeAll(async () => {
  const good = await createCertificate();
  certificates = {
    good,
    expired: await createCertificate({ notAfterDate: new Date(Date.now() - 1000) }),
    otherName: await createCertificate({ ip: '192.0.2.1' }),
    unknown: await createCertificate(),
  };
});

interface Started {
  server: FaultyServer;
  proxy: Proxy;
  /**
   * Returns the number of upstream requests since the last call, or of connection attempts if none succeeds.
   */
  takeAsked: () => number;
}

/** Starts a proxy with one fresh and one stale record from a server that then fails. */
async function startBroken({ tls, breakIt, counts, stale: why, write }: FaultRow): Promise<Started> {
  const server = await startFaultyServer(tls === undefined ? undefined : certificates.good);
  const { good, expired, otherName } = certificates;
  const trust = tls === 'pin' ? { UPSTREAM_FINGERPRINT: good.fingerprint } : {};
  const ca = tls === 'authority' ? { ca: [good, expired, otherName].map(({ cert }) => cert).join('\n') } : {};
  const times = why === 'timeout' ? SHORT_TIMES : {};
  const writeTime = write === 504 ? { UPSTREAM_WRITE_TIMEOUT: '1500ms' } : {};
  const proxy = await startProxy({ UPSTREAM_URL: server.url, ...times, ...writeTime, ...trust }, ca);
  await proxy.ask(stale);
  proxy.pass(HOUR);
  await proxy.ask(fresh);
  await breakIt(server, certificates);
  server.takeRequests();
  server.takeLookups();
  return { server, proxy, takeAsked: counts === 'connections' ? server.takeLookups : server.takeRequests };
}

/** Asserts the number of upstream requests or connection attempts. The second attempt is optional. */
function expectAsked({ asked, counts }: FaultRow, found: number): void {
  expect(found).toBeLessThanOrEqual(counts === 'connections' ? 2 : asked);
  expect(found).toBeGreaterThanOrEqual(Math.min(1, asked));
}

/** Whether the fault concerns the whole server, so that the failure is not cached per handle. */
const isSurelyOfServer = ({ asked, counts, noEntry, restMs }: FaultRow): boolean =>
  restMs !== undefined || ((asked === 0 || counts === 'connections') && noEntry === 502);

describe.each(FAULTS)('proxy during the upstream fault "$fault"', (row) => {
  test('serves cached records, fails uncached reads, and recovers', async () => {
    const { server, proxy, takeAsked } = await startBroken(row);

    const hit = await proxy.ask(fresh);
    expect([hit.status, numberIn(hit), hit.headers['cache-status']]).toEqual([
      200,
      1,
      expect.stringContaining('hit'),
    ]);
    expect(takeAsked(), 'a fresh record is nobody else’s business').toBe(0);

    const old = await proxy.ask(stale);
    expect([old.status, numberIn(old)]).toEqual([200, 1]);
    expect(old.headers['cache-status']).toContain(`detail=${row.stale}`);
    expectAsked(row, takeAsked());

    const none = await proxy.ask(never);
    expect(none.status).toBe(row.noEntry);
    expect(none.headers['cache-control']).toBe('no-store');
    if (row.restMs === undefined) expectAsked(row, takeAsked());
    else expect(takeAsked(), 'it asked to be left alone').toBe(0);

    const again = await proxy.ask(stale);
    expect([again.status, again.headers['cache-status']]).toEqual([
      200,
      expect.stringContaining('detail=backoff'),
    ]);
    expect(takeAsked(), 'it is left alone for upstream.retryAfter').toBe(0);

    server.holds(2);
    await server.heal();
    proxy.pass(row.restMs ?? 0);
    if (isSurelyOfServer(row)) expect(numberIn(await proxy.ask(never)), 'at once').toBe(2);
    proxy.pass(RETRY_AFTER);
    expect(numberIn(await proxy.ask(never)), 'after upstream.retryAfter').toBe(2);
    expect(numberIn(await proxy.ask(stale)), 'after upstream.retryAfter').toBe(2);
    expect(takeAsked(), 'once for each; one connection may do').toBeLessThanOrEqual(2);
  });

  test('sends a write at most once, and never serves a possibly old record as fresh', async () => {
    const { server, proxy, takeAsked } = await startBroken(row);
    const written = await putNumbered(proxy.url, fresh, 2).catch(() => ({ status: 0 }));
    expect(written.status).toBe(row.cutsWrite ? 0 : row.write);
    expect(takeAsked()).toBeLessThanOrEqual(1);
    server.holds(2);
    await server.heal();
    proxy.pass(row.restMs ?? 0);
    expect(numberIn(await proxy.ask(fresh))).toBe(row.staysFresh ? 1 : 2);
  });
});
