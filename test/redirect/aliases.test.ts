import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const alias = (to: string, ttl?: number): unknown[] => [
  value(1, 'HS_ALIAS', to, ttl),
  value(2, 'DESC', 'an alias'),
];
const records = {
  page: [value(1, 'URL', 'https://example.org/page')],
  one: alias('21.T11998/page'),
  two: alias('21.T11998/one'),
  dead: alias('21.T11998/nobody'),
  self: alias('21.t11998/SELF'),
  ping: alias('21.T11998/pong'),
  pong: alias('21.T11998/ping'),
  odd: alias('21.T11998/a?b#c ä'),
  'a?b#c ä': [value(1, 'URL', 'https://example.org/odd')],
};

describe('alias (HS_ALIAS)', () => {
  test('redirects permanently to the final handle on this proxy', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('one')).toEqual([301, '/21.T11998/page']);
    expect(await leads.to('two')).toEqual([301, '/21.T11998/page']);
    expect(await leads.to('one?urlappend=%26k%3Dv')).toEqual([301, '/21.T11998/page?urlappend=%26k%3Dv']);
    expect(await leads.to('odd')).toEqual([301, '/21.T11998/a%3Fb%23c%20%C3%A4']);
    expect(await leads.to('one', { method: 'HEAD' })).toEqual([301, '/21.T11998/page']);
    expect(leads.upstream.asked).toBe(5);
  });

  test('redirects a POST directly to the target', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('two', { method: 'POST' })).toEqual([302, 'https://example.org/page']);
  });

  test('shows the aliases and the final handle’s values for ?noredirect', async () => {
    const leads = await startLeads(records);
    const { status, text } = await leads.get('two?noredirect');
    expect(status).toBe(200);
    expect(text).toMatch(
      /Resolved from the alias <bdi dir="ltr">21\.T11998\/two<\/bdi> → <bdi dir="ltr">21\.T11998\/one<\/bdi> →/,
    );
    expect(text).toContain('https://example.org/page');
  });

  test('shows its own record for ?ignore_aliases', async () => {
    const leads = await startLeads(records);
    const { status, text } = await leads.get('one?ignore_aliases');
    expect([status, text.includes('HS_ALIAS'), text.includes('an alias')]).toEqual([200, true, true]);
    expect(text).toContain('href="/21.T11998/page?noredirect"');
    expect(leads.upstream.asked).toBe(1);
  });

  test('returns 404 for an unknown target or a loop', async () => {
    const leads = await startLeads(records);
    const dead = await leads.get('dead');
    expect([dead.status, dead.text.includes('21.T11998/dead is an alias of 21.T11998/nobody')]).toEqual([
      404,
      true,
    ]);
    for (const name of ['self', 'ping']) {
      const { status, text, headers } = await leads.get(name);
      expect([status, text.includes('Too many aliases or an alias loop')]).toEqual([404, true]);
      expect(headers['cache-control']).toBe('no-store');
    }
    expect((await leads.get('ping?noredirect')).status).toBe(404);
    expect(leads.upstream.asked).toBe(5);
  });

  test('is followed at most 20 times', async () => {
    const chain = Object.fromEntries(
      Array.from({ length: 21 }, (_, at) => [
        `hop${at}`,
        alias(at === 0 ? '21.T11998/page' : `21.T11998/hop${at - 1}`),
      ]),
    );
    const leads = await startLeads({ ...records, ...chain });
    expect(await leads.to('hop19')).toEqual([301, '/21.T11998/page']);
    expect(await leads.to('hop20')).toEqual([404, undefined]);
  });

  test('is cached by clients until the first record of the chain expires', async () => {
    const leads = await startLeads({ ...records, short: alias('21.T11998/page', 20) });
    const { headers } = await leads.get('short');
    expect(headers['cache-control']).toBe('public, max-age=20');
    expect(headers.expires).toBe('Sat, 21 Nov 2026 10:00:20 GMT');
    leads.put({ short: alias('21.T11998/odd') });
    leads.pass(20_000);
    expect(await leads.to('short')).toEqual([301, '/21.T11998/a%3Fb%23c%20%C3%A4']);
  });

  test('never redirects to a different host', async () => {
    const leads = await startLeads({
      slashes: alias('//evil.org/x'),
      '//evil.org/x': [value(1, 'URL', 'https://example.org/handle-with-slashes')],
      half: alias('21.T11998/\ud800'),
      '\ufffd': records.page,
      far: alias('x'.repeat(3000)),
      null: alias('21.T11998/\0'),
    });
    expect(await leads.to('slashes')).toEqual([301, '/%2F%2Fevil.org%2Fx']);
    expect(await leads.to('half')).toEqual([301, '/21.T11998/%EF%BF%BD']);
    expect((await leads.to('far'))[0]).toBe(404);
    expect((await leads.to('null'))[0]).toBe(404);
  });
});
