// The hook recordHeaders: on which responses, how often, and with a header that changes with time.
import { describe, expect, it, vi } from 'vitest';
import type { Plugin, Started } from '../../src/plugin.js';
import { STARTED_AT, type Proxy, startProxy } from '../support/proxy.js';
import { useNock } from '../support/nock.js';
import { HANDLE, PATH, mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

const MINUTE_MS = 60_000;

const minuteOf = (at: number): number => Math.floor((at - STARTED_AT) / MINUTE_MS);

function startWith(started: (now: () => number) => Started): Promise<Proxy> {
  mockUpstream((target) =>
    target.includes('0.NA') ? notFound(target.slice('/api/handles/'.length)) : recordOf(),
  );
  const example: Plugin = {
    name: 'example',
    isEnabled: () => true,
    load: () => Promise.resolve({ start: ({ clock }) => started(clock.now) }),
  };
  return startProxy({}, { plugins: [example] });
}

/** Returns the header of three responses a second apart, and of three after a minute. */
async function minutesAt(path: string, { ask, pass }: Proxy): Promise<(string | string[] | undefined)[]> {
  const minutes = [];
  for (const ms of [0, 1000, 1000, MINUTE_MS, 1000, 1000]) {
    pass(ms);
    minutes.push((await ask(path)).headers['x-minute']);
  }
  return minutes;
}

const minuteHeader = (now: () => number) => (): [string, string][] => [['X-Minute', String(minuteOf(now()))]];

describe('hook recordHeaders', () => {
  it('gets the handle of a record, and for a redirect also that of its prefix record', async () => {
    const given: string[][] = [];
    const proxy = await startWith(() => ({
      recordHeaders(handles) {
        given.push(handles.map(({ text }) => text));
        return [];
      },
    }));
    await proxy.ask(PATH);
    await proxy.ask(`/${HANDLE}`);
    expect(given).toEqual([[HANDLE], [HANDLE, '0.NA/21.T11998']]);
  });

  it('is not asked for a page, nor for the JSON in its place', async () => {
    const recordHeaders = vi.fn(() => []);
    const { ask } = await startWith(() => ({ recordHeaders }));
    const target = `/${HANDLE}?noredirect`;
    for (const Accept of ['text/html', 'application/json']) await ask(target, { headers: { Accept } });
    expect(recordHeaders).not.toHaveBeenCalled();
    await ask(`/${HANDLE}?action=api`);
    expect(recordHeaders).toHaveBeenCalledOnce();
  });

  it('sends a value of any characters as UTF-8', async () => {
    const proxy = await startWith(() => ({ recordHeaders: () => [['X-Title', 'naïve ☃']] }));
    for (const path of [PATH, `/${HANDLE}`]) {
      const { headers } = await proxy.ask(path);
      expect(Buffer.from(String(headers['x-title']), 'latin1').toString('utf8')).toBe('naïve ☃');
    }
  });

  it('is asked again only when the entry changes', async () => {
    const proxy = await startWith((now) => ({ recordHeaders: minuteHeader(now) }));
    expect(await minutesAt(PATH, proxy)).toEqual(['0', '0', '0', '0', '0', '0']);
  });

  it('is asked again for a redirect when its dependency ends', async () => {
    const proxy = await startWith((now) => ({
      recordHeaders: minuteHeader(now),
      redirect: () => ({
        dependencyOf: (_handle, at) => ({ isCurrent: (later) => minuteOf(later) === minuteOf(at) }),
      }),
    }));
    expect(await minutesAt(`/${HANDLE}`, proxy)).toEqual(['0', '0', '0', '1', '1', '1']);
  });
});
