// Withdrawn handles: 410 with a page on redirects, and unchanged records.
import { describe, expect, it } from 'vitest';
import { configFrom } from '../support/load-config.js';
import { PREFIX, startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const WAS = value(7, 'TOMBSTONE', 'Survey <of> lakes, version 2', 3600);
const RECORDS = {
  gone: [value(2, 'EMAIL', 'a@example.org'), WAS],
  alias: [value(1, 'HS_ALIAS', `${PREFIX}/gone`)],
  moved: [value(1, 'URL', 'https://example.org/new'), WAS],
  located: [value(1, '10320/loc', '<locations><location href="https://example.org/l"/></locations>'), WAS],
  lower: [value(7, 'tombstone', 'a lake')],
  bare: [{ ...value(7, 'TOMBSTONE', ''), timestamp: 'long ago' }],
  odd: [{ ...value(7, 'TOMBSTONE', ''), timestamp: { toString: 1 } }],
  long: [value(7, 'TOMBSTONE', 'x'.repeat(100_000))],
  noted: [value(7, 'NOTE', 'no target')],
  '0.NA/21.T11998': [value(3, 'HS_NAMESPACE', '<namespace><contact>owner@example.org</contact></namespace>')],
};

const start = () => startLeads(RECORDS, { TOMBSTONES_TYPE: 'Tombstone' });

describe('a handle with a tombstone', () => {
  it('is 410 with a page that says what it was, since when, and whom to ask', async () => {
    const { status, headers, text } = await (await start()).get('gone');
    expect(status).toBe(410);
    expect(headers['content-type']).toContain('text/html');
    expect(text).toContain('The object of this handle has been withdrawn');
    expect(text).toContain('Survey &#60;of&#62; lakes, version 2 – Withdrawn since 2026-11-21.');
    expect(text).toContain('<a href="mailto:owner@example.org">');
    expect(text).toContain(`href="/${PREFIX}/gone?noredirect"`);
    expect(text).not.toContain('Reference:');
  });

  it('is cached by clients as a redirect is, and not indexed', async () => {
    const leads = await start();
    leads.put({ linked: [value(1, 'URL', 'https://example.org/', 3600)] });
    const { headers } = await leads.get('gone');
    expect(headers['x-robots-tag']).toBe('noindex');
    expect(headers['vary']).toContain('Accept');
    expect(headers['cache-control']).toBe((await leads.get('linked')).headers['cache-control']);
    const again = await leads.get('gone', { 'If-None-Match': headers['etag'] ?? '' });
    expect([again.status, leads.upstream.targets.filter((target) => target.endsWith('/gone'))]).toEqual([
      410,
      [`/api/handles/${PREFIX}/gone`],
    ]);
  });

  it('is problem JSON for programs, and HEAD has its status', async () => {
    const leads = await start();
    const json = await leads.get('gone', { Accept: 'application/json' });
    expect([json.status, json.headers['content-type']]).toEqual([410, 'application/problem+json']);
    expect(JSON.parse(json.text)).toMatchObject({
      ...{ code: 'REDIRECT_WITHDRAWN', responseCode: 2, handle: `${PREFIX}/gone` },
      detail: 'Survey <of> lakes, version 2 – Withdrawn since 2026-11-21.',
    });
    const head = await leads.get('gone', {}, { method: 'HEAD' });
    expect([head.status, head.headers['x-robots-tag'], head.text]).toEqual([410, 'noindex', '']);
  });

  it('keeps its record, as JSON and as a page', async () => {
    const leads = await start();
    const { status, text } = await leads.ask(`/api/handles/${PREFIX}/gone`);
    expect([status, JSON.parse(text)]).toMatchObject([200, { responseCode: 1, values: RECORDS.gone }]);
    for (const query of ['noredirect', 'action=api', 'type=EMAIL', 'type=TOMBSTONE', 'index=7']) {
      const shown = await leads.get(`gone?${query}`);
      expect([query, shown.status, shown.headers['x-robots-tag']]).toEqual([query, 200, undefined]);
    }
  });

  it('is 410 behind an alias too', async () => {
    const leads = await start();
    const { status, text } = await leads.get('alias');
    expect(status).toBe(410);
    expect(text).toContain(`href="/${PREFIX}/alias?noredirect"`);
    expect((await leads.get('alias?noredirect')).text).toContain('Survey &#60;of&#62; lakes');
  });

  it('redirects as long as it has a URL or locations', async () => {
    const leads = await start();
    expect(await leads.to('moved')).toEqual([302, 'https://example.org/new']);
    expect(await leads.to('moved')).toEqual([302, 'https://example.org/new']);
    expect(await leads.to('located')).toEqual([302, 'https://example.org/l']);
  });

  it('may write its type in another case, leave text and date out, or be long', async () => {
    const leads = await start();
    expect((await leads.get('lower')).status).toBe(410);
    for (const name of ['bare', 'odd']) {
      const { status, text } = await leads.get(name);
      expect([name, status, text.includes('Withdrawn since')]).toEqual([name, 410, false]);
    }
    expect((await leads.get('long', { 'Accept-Encoding': 'identity' })).text.length).toBeLessThan(20_000);
  });

  it('is a stale 410 while the Handle server fails', async () => {
    const leads = await start();
    await leads.get('gone');
    leads.pass(3_700_000);
    leads.upstream.answers({ status: 503, body: {} });
    const { status, headers } = await leads.get('gone');
    expect(status).toBe(410);
    expect(headers['cache-status']).toContain('; detail=error');
  });
});

describe('other handles', () => {
  it('keep their page and their 404', async () => {
    const leads = await start();
    expect((await leads.get('noted')).status).toBe(200);
    expect((await leads.get('none')).status).toBe(404);
  });

  it('with such a value show it while no type is configured', async () => {
    const { status, headers } = await (await startLeads(RECORDS)).get('gone');
    expect([status, headers['x-robots-tag']]).toEqual([200, undefined]);
  });
});

describe('a type that leads somewhere', () => {
  it.each(['URL', 'url.old', '10320/loc', 'HS_ALIAS', '0.TYPE/URL', 'a b'])(
    'cannot mark tombstones: "%s"',
    (type) => {
      expect(() => configFrom({ env: { TOMBSTONES_TYPE: type } })).toThrow(
        'give a value type that is no URL, HS_… or 10320/…',
      );
    },
  );
});
