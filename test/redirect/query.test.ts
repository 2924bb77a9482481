// Query parameters are compatible with HDLProxy.
import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const records = {
  abc: [
    value(5, 'URL', 'https://example.org/first?x=1'),
    value(2, 'URL', 'https://example.org/second'),
    value(3, 'URL.MIRROR', 'https://mirror.example.org/'),
    value(4, 'EMAIL', 'a@example.org'),
  ],
  subtype: [value(1, 'EMAIL', 'a@example.org'), value(2, 'URL.MIRROR', 'https://mirror.example.org/')],
  lower: [value(1, 'url', 'https://example.org/lower')],
  old: [value(1, '0.TYPE/URL', 'https://example.org/old')],
  older: [value(1, '0.TYPE/URL', 'https://example.org/old'), value(2, 'URL', 'https://example.org/new')],
  blank: [value(1, 'URL', ' '), value(2, 'URL', 'https://example.org/not-blank')],
  binary: [{ ...value(1, 'URL', ''), data: { format: 'base64', value: 'aHR0cHM6Ly94Lw==' } }],
  nothing: [value(1, 'DESC', 'no address')],
};

describe('redirect query parameters', () => {
  test('default to the first URL value, then the first value of a URL subtype', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('abc')).toEqual([302, 'https://example.org/first?x=1']);
    expect(await leads.to('subtype')).toEqual([302, 'https://mirror.example.org/']);
    expect(await leads.to('lower')).toEqual([302, 'https://example.org/lower']);
    // HDLProxy accepts the old type name only together with the new one.
    expect(await leads.to('old')).toEqual([200, undefined]);
    expect(await leads.to('older')).toEqual([302, 'https://example.org/old']);
    expect(await leads.to('blank')).toEqual([302, 'https://example.org/not-blank']);
    for (const name of ['binary', 'nothing']) expect(await leads.to(name)).toEqual([200, undefined]);
  });

  test('select values by index and type, and ignore an invalid index', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('abc?index=2')).toEqual([302, 'https://example.org/second']);
    expect(await leads.to('abc?index=2&index=3')).toEqual([302, 'https://example.org/second']);
    expect(await leads.to('abc?type=URL.MIRROR')).toEqual([302, 'https://mirror.example.org/']);
    expect(await leads.to('abc?type=URL.')).toEqual([302, 'https://example.org/first?x=1']);
    expect(await leads.to('abc?index=abc')).toEqual([302, 'https://example.org/first?x=1']);
    expect(await leads.to('abc?index=4')).toEqual([200, undefined]);
    expect(await leads.to('abc?type=NOSUCH')).toEqual([200, undefined]);
    expect(leads.upstream.asked).toBe(1);
  });

  test('include urlappend, which is appended to the target', async () => {
    const leads = await startLeads(records);
    const appended = async (text: string) => (await leads.to(`abc?urlappend=${text}`))[1];
    expect(await appended('%26z%3D3%23frag')).toBe('https://example.org/first?x=1&z=3#frag');
    expect(await appended('%2F%C3%A4%20b')).toBe('https://example.org/first?x=1/%C3%A4%20b');
    expect(await appended('')).toBe('https://example.org/first?x=1');
    expect(await appended('%26q%3Da+b')).toBe('https://example.org/first?x=1&q=a+b');
  });

  test('include redirectionHeaders, which returns the redirect headers with status 200', async () => {
    const leads = await startLeads({ ...records, alias: [value(1, 'HS_ALIAS', '21.T11998/abc')] });
    for (let times = 0; times < 3; times++) {
      expect(await leads.to('abc?redirectionHeaders')).toEqual([200, 'https://example.org/first?x=1']);
      expect(await leads.to('alias?redirectionHeaders')).toEqual([200, '/21.T11998/abc?redirectionHeaders']);
    }
    // With status 200, browsers show the page.
    expect((await leads.get('abc?redirectionHeaders')).text).toContain('<html lang="en">');
  });

  test('include type and index, which bypass an alias', async () => {
    const leads = await startLeads({
      alias: [value(1, 'HS_ALIAS', '21.T11998/abc'), value(2, 'URL', 'https://example.org/own')],
    });
    expect((await leads.to('alias'))[0]).toBe(404);
    expect(await leads.to('alias?type=URL')).toEqual([302, 'https://example.org/own']);
    expect(await leads.to('alias?index=2')).toEqual([302, 'https://example.org/own']);
  });

  test('do not include a fragment of the request line', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('abc#part')).toEqual([302, 'https://example.org/first?x=1']);
    expect(await leads.to('abc?index=2#part')).toEqual([302, 'https://example.org/second']);
  });

  test('include action, which takes precedence over noredirect when known', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('abc?action=redirect&noredirect')).toEqual([302, 'https://example.org/first?x=1']);
    expect(await leads.to('abc?action=other&noredirect')).toEqual([200, undefined]);
  });

  test('cause a 400 when urlappend would change the host', async () => {
    const leads = await startLeads({ bare: [value(1, 'URL', 'https://example.org')] });
    for (const text of ['.evil.org', '%40evil.org', '%3A1%40evil.org', ':8080', '%0A.evil.org']) {
      expect(await leads.to(`bare?urlappend=${text}`), text).toEqual([400, undefined]);
    }
    expect(await leads.to('bare?urlappend=%2Fpath')).toEqual([302, 'https://example.org/path']);
    expect(await leads.to('bare?urlappend=%5Cevil.org')).toEqual([400, undefined]);
  });

  test('are ignored when unknown', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('abc?foo=bar&noredirectx')).toEqual([302, 'https://example.org/first?x=1']);
  });

  test('include noredirect and action=showvalues, which show the values', async () => {
    const leads = await startLeads(records);
    for (const query of ['noredirect', 'noredirect=false', 'action=showvalues', 'action=SHOWVALUES']) {
      const { status, headers, text } = await leads.get(`abc?${query}`);
      expect([status, headers['content-type'], headers.location]).toEqual([
        200,
        'text/html;charset=utf-8',
        undefined,
      ]);
      expect(text).toContain('mirror.example.org');
    }
    const { text } = await leads.get('abc?noredirect&index=2');
    expect(text).toContain('https://example.org/second');
    expect(text).not.toContain('mirror.example.org');
  });

  test('include auth, which reads from the Handle server and stores the response', async () => {
    const leads = await startLeads(records);
    await leads.to('abc');
    leads.put({ abc: [value(1, 'URL', 'https://example.org/moved')] });
    expect(await leads.to('abc')).toEqual([302, 'https://example.org/first?x=1']);
    expect(await leads.to('abc?auth=false')).toEqual([302, 'https://example.org/moved']);
    expect(leads.upstream.targets.at(-1)).toMatch(/\?auth=true$/);
    expect(await leads.to('abc')).toEqual([302, 'https://example.org/moved']);
    expect(await leads.to('abc?cert')).toEqual([302, 'https://example.org/moved']);
    expect(leads.upstream.asked).toBe(3);
  });

  test('include action=api, which returns the record interface response', async () => {
    const leads = await startLeads(records);
    for (const query of ['', 'index=2', 'type=EMAIL', 'pretty', 'callback=cb', 'type=NOSUCH']) {
      const expected = await leads.ask(`/api/handles/21.T11998/abc?${query}`);
      const { status, headers, text } = await leads.get(`abc?action=api&${query}`);
      expect([status, headers['content-type'], text]).toEqual([
        expected.status,
        expected.headers['content-type'],
        expected.text,
      ]);
    }
    const missing = await leads.get('nobody?action=api', { Accept: 'text/html' });
    expect([missing.status, missing.text]).toEqual([404, '{"responseCode":100,"handle":"21.T11998/nobody"}']);
  });

  test('include action=api, which returns record interface errors', async () => {
    const leads = await startLeads(records);
    leads.upstream.answers({ status: 500, body: 'broken' });
    const failed = await leads.get('abc?action=api', { Accept: 'text/html' });
    expect([failed.status, JSON.parse(failed.text)]).toMatchObject([502, { responseCode: 2 }]);
    leads.upstream.answers({ status: 400, body: { responseCode: 301, handle: '21.T11998/other' } });
    const refused = await leads.get('other?action=api');
    expect(JSON.parse(refused.text)).toMatchObject({ responseCode: 301 });
  });

  test('do not include api without action=, as in HDLProxy', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('abc?api')).toEqual([302, 'https://example.org/first?x=1']);
  });

  test('include action=showurls, which shows a record that has no URL or location', async () => {
    const leads = await startLeads(records);
    const { status, headers, text } = await leads.get('nothing?action=showurls');
    expect([status, headers['content-type']]).toEqual([200, 'text/html;charset=utf-8']);
    expect(text).toContain('no address');
  });

  test('include action=showurls, which lists all locations as XML', async () => {
    const leads = await startLeads({
      ...records,
      located: [
        value(
          1,
          '10320/LOC',
          '<locations><location id="0" href="https://a.example.org/?a=1&amp;b=&quot;" weight=".5"/></locations>',
        ),
        value(2, 'URL', 'https://b.example.org/'),
      ],
    });
    const plain = await leads.get('subtype?action=showurls');
    expect(plain.headers['content-type']).toBe('text/xml;charset=utf-8');
    expect(plain.text).toBe(
      '<locations>\n<location mode="legacy" weight="1.0" href="https://mirror.example.org/"/>\n</locations>\n',
    );
    expect((await leads.get('located?action=showurls')).text.split('\n')).toEqual([
      '<locations>',
      '<location id="0" href="https://a.example.org/?a=1&#38;b=&#34;" weight=".5"/>',
      '<location mode="legacy" weight="0.0" href="https://b.example.org/"/>',
      '</locations>',
      '',
    ]);
  });

  test('include action=showurls, which lists the URL values that can be the target of a record without a list', async () => {
    const leads = await startLeads({
      several: [value(1, 'URL.MIRROR', 'm'), value(2, '0.TYPE/URL', 'z'), value(3, 'URL', 'u')],
      subtypes: [value(1, 'URL.A', 'a'), value(2, 'URL.B', 'b')],
    });
    const legacy = (href: string, weight: string): string =>
      `<location mode="legacy" weight="${weight}" href="${href}"/>\n`;
    const listOf = async (path: string): Promise<string> =>
      (await leads.get(`${path}?action=showurls`)).text.replace(/<\/?locations>\n/g, '');
    expect(await listOf('several')).toBe(legacy('z', '1.0') + legacy('u', '0.0'));
    expect(await listOf('subtypes')).toBe(legacy('a', '1.0') + legacy('b', '0.0'));
  });

  test('include action=showurls, which shows the page of a record whose list has no location', async () => {
    const leads = await startLeads({
      empty: [value(1, '10320/loc', '<locations></locations>')],
      without: [
        value(1, '10320/loc', '<locations no_legacy="1"/>'),
        value(2, 'URL', 'https://a.example.org/'),
      ],
    });
    for (const path of ['empty', 'without']) {
      const { status, headers } = await leads.get(`${path}?action=showurls`);
      expect([status, headers['content-type']]).toEqual([200, 'text/html;charset=utf-8']);
    }
  });
});
