import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Probe, startProbes } from '../../src/app/probes.js';
import type { ProbeReport } from '../../src/upstream/probe.js';

/** A report, and whether the server itself has responded. */
type Scripted = ProbeReport & { hasAnswered: boolean };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const GOOD: Scripted = { ms: 3, version: '2.11', hasAnswered: true };
const refused = (cause = 'refused'): Scripted => ({
  ms: 1,
  failure: { code: 'UPSTREAM_UNREACHABLE', cause, remedy: 'start it' },
  hasAnswered: false,
});

/** Returns a server whose probes give these results in order, repeating the last one. */
function serverWith(target: Probe['target'], results: Scripted[], scheme = 'http') {
  const last = results.at(-1)!;
  const run = vi.fn<Probe['run']>(({ onAnswered }) => {
    const { hasAnswered, ...report } = results.shift() ?? last;
    if (hasAnswered) onAnswered();
    return Promise.resolve(report);
  });
  return { target, server: `${scheme}://${target}.test`, run };
}

function start(...probes: ReturnType<typeof serverWith>[]) {
  const lines: [level: string, server: unknown, msg: string][] = [];
  const log = (level: string) => (fields: object, msg: string) => {
    lines.push([level, (fields as { server: string }).server, msg]);
  };
  const onAnswered = vi.fn();
  const setCertificateExpiry = vi.fn();
  const cancel = startProbes(
    probes,
    { log: { info: log('info'), warn: log('warn') }, metrics: { setCertificateExpiry } } as never,
    onAnswered,
  );
  return { lines, onAnswered, setCertificateExpiry, cancel };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('startup probes', () => {
  test('contact each server once, with one log line each', async () => {
    const upstream = serverWith('upstream', [GOOD]);
    const secondary = serverWith('secondary', [refused()]);
    const redis = serverWith('redis', [refused()]);
    const { lines, onAnswered } = start(upstream, secondary, redis);
    await pass(60_000);
    expect(lines).toEqual([
      ['info', 'http://upstream.test', 'probe succeeded'],
      ['warn', 'http://secondary.test', 'probe failed'],
      ['warn', 'http://redis.test', 'probe failed'],
    ]);
    expect([upstream, secondary, redis].map(({ run }) => run.mock.calls.length)).toEqual([1, 1, 1]);
    expect(onAnswered).toHaveBeenCalledOnce();
  });

  test('log a warning about a server that responds', async () => {
    const warning = { cause: 'slow', remedy: 'hurry' };
    const { lines, onAnswered } = start(serverWith('upstream', [{ ...GOOD, warning }]));
    await pass(0);
    expect(lines).toEqual([['warn', 'http://upstream.test', 'probe succeeded with a warning']]);
    expect(onAnswered).toHaveBeenCalledOnce();
  });

  test('retry an unresponsive upstream every two seconds and log each new reason', async () => {
    const upstream = serverWith('upstream', [refused(), refused(), refused('unknown name'), GOOD]);
    const redis = serverWith('redis', [refused()]);
    const { lines, onAnswered } = start(upstream, redis);
    await pass(5999);
    expect(upstream.run).toHaveBeenCalledTimes(3);
    expect(onAnswered).not.toHaveBeenCalled();
    await pass(1);
    expect(onAnswered).toHaveBeenCalledOnce();
    await pass(60_000);
    expect(upstream.run).toHaveBeenCalledTimes(4);
    expect(redis.run).toHaveBeenCalledOnce();
    expect(lines.filter(([, server]) => server === 'http://upstream.test')).toEqual([
      ['warn', 'http://upstream.test', 'probe failed'],
      ['warn', 'http://upstream.test', 'probe failed'],
      ['info', 'http://upstream.test', 'probe succeeded'],
    ]);
  });

  test('succeed when a secondary responds', async () => {
    const upstream = serverWith('upstream', [refused()]);
    const { onAnswered } = start(upstream, serverWith('secondary', [GOOD]));
    await pass(60_000);
    expect(onAnswered).toHaveBeenCalledOnce();
    expect(upstream.run).toHaveBeenCalledOnce();
  });

  test('accept an error response as proof that the server responds', async () => {
    const failure = { code: 'UPSTREAM_INVALID_RESPONSE', cause: 'a redirect' };
    const { lines, onAnswered } = start(serverWith('upstream', [{ ms: 1, failure, hasAnswered: true }]));
    await pass(0);
    expect(onAnswered).toHaveBeenCalledOnce();
    expect(lines).toEqual([['warn', 'http://upstream.test', 'probe failed']]);
  });

  test('check a server certificate hourly to detect renewal', async () => {
    const until = (expires: string): Scripted => ({
      ...GOOD,
      certificate: { fingerprint: 'AB', expires },
    });
    const results = ['2026-12-01', '2026-12-01', '2027-12-01'].map((day) => until(`${day}T00:00:00.000Z`));
    const upstream = serverWith('upstream', results, 'https');
    const secondary = serverWith('secondary', [GOOD]);
    const { lines, setCertificateExpiry } = start(upstream, secondary);
    await pass(2 * 3_600_000);
    expect(setCertificateExpiry.mock.calls).toEqual([
      ['https://upstream.test', '2026-12-01T00:00:00.000Z'],
      ['https://upstream.test', '2026-12-01T00:00:00.000Z'],
      ['https://upstream.test', '2027-12-01T00:00:00.000Z'],
    ]);
    expect(secondary.run).toHaveBeenCalledOnce();
    expect(lines).toHaveLength(2);
  });

  test('stop without logging when cancelled', async () => {
    const upstream = serverWith('upstream', [refused()]);
    const { lines, cancel } = start(upstream);
    cancel();
    await pass(60_000);
    expect(lines).toEqual([]);
    expect(upstream.run).toHaveBeenCalledOnce();
    expect(upstream.run.mock.calls[0]?.[0].signal.aborted).toBe(true);
  });
});
