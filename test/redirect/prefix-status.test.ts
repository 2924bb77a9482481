import { partial } from '../support/partial.js';
import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/host.js';
import type { Config } from '../../src/config/schema.js';
import { createOtherRecords, createPrefixRecords } from '../../src/plugins/locations/other-records.js';
import { handleRef } from '../../src/handle/handle.js';
import { type ErrorCode, ServiceError } from '../../src/errors.js';
import { systemClock } from '../../src/clock.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import type { Caller } from '../../src/upstream/caller.js';
import { testContext } from '../support/context.js';
import { value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

const HANDLE = '21.T11998/page';

/** Starts a proxy for one handle whose prefix record has `namespace` as its HS_NAMESPACE, and other values. */
async function startWith(namespace: string, other: object[] = []): Promise<Proxy & { targets: string[] }> {
  const upstream = mockUpstream((target) => {
    const handle = decodeURIComponent(target.slice('/api/handles/'.length));
    if (handle === HANDLE) return recordOf([value(1, 'URL', 'https://example.org/')], handle);
    const isPrefix = handle === '0.NA/21.T11998';
    return isPrefix ? recordOf([value(3, 'HS_NAMESPACE', namespace), ...other], handle) : notFound(handle);
  });
  return { ...(await startProxy()), targets: upstream.targets };
}

describe('prefix status and contact', () => {
  test('cause a 404 with the reason and the contact for an inactive prefix', async () => {
    const proxy = await startWith(
      '<namespace><status>inactive</status><statusmsg>Closed &amp; gone</statusmsg><contact>c@example.org</contact></namespace>',
    );
    for (const handle of [HANDLE, '21.T11998/none']) {
      const { status, text } = await proxy.ask(`/${handle}`);
      expect(status).toBe(404);
      expect(text).toContain('This prefix is inactive');
      expect(text).toContain('21.T11998: Closed &#38; gone');
      expect(text).toContain('Ask the operator of the prefix: <a href="mailto:c@example.org">');
      const json = await proxy.ask(`/${handle}`, { headers: { Accept: 'application/json' } });
      expect(JSON.parse(json.text)).toMatchObject({ detail: '21.T11998: Closed & gone' });
    }
    expect((await proxy.ask(`/api/handles/${HANDLE}`)).status).toBe(200);
  });

  test.each([
    [404, 'a record of less than 128 KiB', 120],
    [302, 'a longer one, which every redirect of the prefix would parse', 128],
  ])('cause %d in %s', async (status, _record, kib) => {
    const inactive = '<namespace><status>inactive</status></namespace>';
    const proxy = await startWith(inactive, [value(4, 'DESC', 'x'.repeat(kib * 1024))]);
    expect((await proxy.ask(`/${HANDLE}`)).status).toBe(status);
  });

  test.each([
    [404, 'of less than 16 KiB', 15],
    [302, 'that is longer, which every redirect of the prefix would parse', 16],
  ])('cause %d in a value %s', async (status, _value, kib) => {
    const padding = `<x>${'x'.repeat(kib * 1024)}</x>`;
    const proxy = await startWith(`<namespace>${padding}<status>inactive</status></namespace>`);
    expect((await proxy.ask(`/${HANDLE}`)).status).toBe(status);
  });

  test('add the contact to the page of an unknown handle', async () => {
    const proxy = await startWith('<namespace><contact>ns@example.org</contact></namespace>');
    const { status, text } = await proxy.ask('/21.T11998/none');
    expect(status).toBe(404);
    expect(text).toContain('Ask the operator of the prefix: <a href="mailto:ns@example.org">');
    expect((await proxy.ask(`/${HANDLE}`)).status).toBe(302);
  });

  test('show a contact as text, not as a link, unless it is a single mailbox address', async () => {
    const contact = 'a@example.org?bcc=b@example.org &lt;script&gt;';
    const proxy = await startWith(`<namespace><contact>${contact}</contact></namespace>`);
    const { text } = await proxy.ask('/21.T11998/none');
    expect(text).toContain('<bdi>a@example.org?bcc=b@example.org &#60;script&#62;</bdi>');
    expect(text).not.toContain('mailto:');
  });

  test('require one prefix record read for all unknown handles, and none for a path without a prefix', async () => {
    const proxy = await startWith('<namespace/>');
    for (const path of ['/21.T11998/a', '/21.T11998/b', '/robots', '/api-docs/x'])
      expect((await proxy.ask(path)).status).toBe(404);
    expect(proxy.targets.filter((target) => target.includes('0.NA'))).toEqual([
      '/api/handles/0.NA/21.T11998',
    ]);
  });

  const CALLER: Caller = { class: 'background', client: '192.0.2.1' };

  const bounds = { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } };

  const REFUSED = {
    kind: 'refused',
    refused: { kind: 'refused', status: 404, members: {}, namesHandle: false },
  } as const;

  /** Starts a prefix record reader whose loads first fail with `failures`, then return 404. */
  function startRecords(failures: ErrorCode[] = []) {
    const asked: (Caller | undefined)[] = [];
    const time = { now: 1 };
    const context = testContext({ clock: { ...systemClock, now: () => time.now } });
    const host = partial<Host>({
      ...context,
      resolver: {
        resolve: (_handle, { caller }) => {
          asked.push(caller);
          const code = failures.shift();
          return code === undefined ? Promise.resolve(REFUSED) : Promise.reject(new ServiceError(code));
        },
        fromMemory: () => undefined,
      },
      cache: { memory: new MemoryStore({ bounds, now: () => time.now }), trustedSince: () => 0 },
    });
    const config = partial<Config>({ upstream: { retryAfterMs: 5000 } });
    const records = createPrefixRecords(createOtherRecords(config, host), new Map());
    return { asked, records, time };
  }

  test('do not expire prepared redirects when they are reloaded and still have no influence', async () => {
    const { records, time } = startRecords();
    const readBoth = async (): Promise<void> => {
      for (const name of ['0.NA/21.T11998', '0.NA/0.NA']) await records.read(handleRef(name, false), CALLER);
      await Promise.resolve();
    };
    await readBoth();
    const handle = handleRef(HANDLE, false);
    const dependency = records.plainPrefixOf(handle, time.now);
    expect(dependency?.isCurrent(time.now)).toBe(true);
    time.now += 5001;
    expect(dependency?.isCurrent(time.now)).toBe(false);
    await readBoth();
    expect(dependency?.isCurrent(time.now)).toBe(true);
    expect(records.plainPrefixOf(handle, time.now)).toBe(dependency);
  });

  test('are read on behalf of the requesting client', async () => {
    const { asked, records } = startRecords();
    await records.read(handleRef('0.NA/21.T11998', false), CALLER);
    expect(asked).toEqual([CALLER]);
  });

  test.each([
    ['UPSTREAM_UNREACHABLE', 1],
    ['OVERLOADED', 2],
  ] as const)(
    'when the first of two reads fails with %s, are requested %i time(s) in total',
    async (code, times) => {
      const { asked, records } = startRecords([code]);
      expect(await records.read(handleRef('0.NA/21.T11998', false), CALLER)).toMatchObject({
        hasFailed: true,
      });
      await records.read(handleRef('0.NA/21.T11998', false), CALLER);
      expect(asked).toHaveLength(times);
    },
  );

  test('remain cached for prefixes in use despite requests for many unknown prefixes', async () => {
    const { records } = startRecords();
    await records.read(handleRef('0.NA/0.NA', false), CALLER);
    const forgottenAt: number[] = [];
    for (let at = 0; at < 20_000; at++) {
      await records.read(handleRef(`0.NA/99.${at}`, false), CALLER);
      if (at % 1000 === 0) await records.read(handleRef('0.NA/21.T11998', false), CALLER);
      const isKnown = records.plainPrefixOf(handleRef(HANDLE, false), 1)?.isCurrent(1) === true;
      if (at > 0 && !isKnown) forgottenAt.push(at);
    }
    expect(forgottenAt).toEqual([]);
  });
});
