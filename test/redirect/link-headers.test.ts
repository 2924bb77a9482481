import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const plain = value(9, 'URL', 'https://example.org/');

describe('Link and record headers of a redirect', () => {
  test('include each location that has a rel, whichever location is selected', async () => {
    const leads = await startLeads({
      linked: [
        value(
          1,
          '10320/loc',
          '<locations><location href="https://example.org/"/>' +
            '<location rel="describedby" weight="0" href_template="https://meta.example.org/{hdl}" media-type="application/json"/>' +
            '<location rel="cite-as" weight="0" href="https://cite.example.org/" title="Ä title (*)" titlelang="de"/></locations>',
        ),
        value(
          2,
          '10320/links',
          '<links><location rel="license" href="https://license.example.org/"/></links>',
        ),
      ],
    });
    // `cite-as` is first, the others are in HDLProxy's order.
    const link = [
      '<https://cite.example.org/>; rel="cite-as"; title*=UTF-8\'de\'%C3%84%20title%20%28%2A%29',
      '<https://license.example.org/>; rel="license"',
      '<https://meta.example.org/21.T11998%2Flinked>; rel="describedby"; type="application/json"',
    ].join(', ');
    // The later iterations use prepared responses.
    for (let times = 0; times < 4; times++) expect((await leads.get('linked')).headers.link).toBe(link);
    expect((await leads.get('linked?noredirect')).headers.link).toBeUndefined();
  });

  test('have one line for each name, with and without Origin, prepared or not', async () => {
    const rels = Array.from(
      { length: 95 },
      (_, at) => `<location rel="item" href="https://a.example.org/${at}"/>`,
    );
    const own = 'X-Licence: CC0\nLink: <https://l.example.org/>; rel="license"\nx-licence: CC BY';
    const leads = await startLeads(
      {
        many: [
          value(1, '10320/links', `<links>${rels.join('')}</links>`),
          value(2, '10320/headers', own),
          plain,
        ],
      },
      { REDIRECT_ALLOWED_HEADERS: 'Link,X-Licence' },
    );
    const sent = rels.map((_, at) => `<https://a.example.org/${at}>; rel="item"`).join(', ');
    for (const headers of [
      { Origin: 'https://app.example.org' },
      {},
      {},
      { Origin: 'https://app.example.org' },
    ]) {
      const { rawHeaders } = await leads.get('many', headers);
      const valuesOf = (name: string): string[] =>
        rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
      expect(valuesOf('link')).toEqual([`<https://l.example.org/>; rel="license", ${sent}`]);
      expect(valuesOf('x-licence')).toEqual(['CC0, CC BY']);
      // Python's http.client reads at most 100 lines.
      expect(rawHeaders.length / 2).toBeLessThan(20);
    }
  });

  test('omit text that is no link, and links with an open string', async () => {
    const given = [
      'Link: <https://a.example.org/>; rel=a, none, <https://b.example.org/>;rel="b, \\"c"',
      'Link: <https://open.example.org/ <https://c.example.org/>; rel="open, <https://d.example.org/>; rel=d',
      'Link: nothing',
    ];
    const leads = await startLeads({ odd: [value(1, '10320/headers', given.join('\n')), plain] });
    expect((await leads.get('odd')).headers.link).toBe(
      ['<https://a.example.org/>; rel=a', '<https://b.example.org/>;rel="b, \\"c"'].join(', '),
    );
  });

  test('escape values that contain header syntax', async () => {
    const leads = await startLeads({
      linked: [
        value(
          1,
          '10320/links',
          '<links><location rel="a&quot;; anchor=&quot;x&#10;" href="https://a.example.org/&gt;"/>' +
            '<location rel="b" href="javascript:alert(1)"/></links>',
        ),
        plain,
      ],
      many: [
        value(
          1,
          '10320/links',
          `<links>${'<location rel="item" href="https://a.example.org/"/>'.repeat(9000)}</links>`,
        ),
        plain,
      ],
    });
    expect((await leads.get('linked')).headers.link).toBe(
      '<https://a.example.org/%3E>; rel="a\\"; anchor=\\"x"',
    );
    expect(String((await leads.get('many')).headers.link).length).toBeLessThan(9000);
  });

  const headers = value(
    1,
    '10320/headers',
    [
      'Location: https://evil.example.org/',
      'Set-Cookie: a=b',
      'Cache-Control: max-age=9',
      'X-Licence : CC0 {hdl}',
      'X-Other: 1',
      'Link: <https://l.example.org/>; rel="h"',
      'X-Licence: \u0085ä',
      'no colon',
    ].join('\n'),
  );

  test('exclude 10320/headers fields that are not in redirect.allowedHeaders', async () => {
    const leads = await startLeads(
      { headed: [headers, plain] },
      { REDIRECT_ALLOWED_HEADERS: 'Link,X-Licence' },
    );
    for (let times = 0; times < 4; times++) {
      const { headers: sent } = await leads.get('headed');
      expect([sent.location, sent['set-cookie'], sent['x-other']]).toEqual([
        'https://example.org/',
        undefined,
        undefined,
      ]);
      expect([sent.link, sent['x-licence']]).toEqual([
        '<https://l.example.org/>; rel="h"',
        'CC0 21.T11998%2Fheaded',
      ]);
      expect(sent['cache-control']).toBe('public, max-age=60');
    }
  });

  test('include only Link from 10320/headers by default', async () => {
    const leads = await startLeads({ headed: [headers, plain] });
    const { headers: sent } = await leads.get('headed');
    expect([sent.link, sent['x-licence']]).toEqual(['<https://l.example.org/>; rel="h"', undefined]);
  });

  test.each([
    'Location',
    'Set-Cookie',
    'cache-control',
    'Content-Security-Policy',
    'X-Accel-Redirect',
    'Cloudflare-CDN-Cache-Control',
    'X-LiteSpeed-Cache-Control',
    'Surrogate-Control',
    'Surrogate-Key',
    'a b',
    '',
  ])('cannot be configured to include %j', async (name) => {
    await expect(startLeads({}, { REDIRECT_ALLOWED_HEADERS: `Link,${name}` })).rejects.toThrow(
      /allowedHeaders/,
    );
  });
});
