// FAIR Signposting: typed links in redirects, record pages and link sets, read with a Link header parser.
import LinkHeader from 'http-link-header';
import { describe, expect, it } from 'vitest';
import { type Leads, startLeads, value } from '../support/leads.js';
import { problemsFrom } from '../support/load-config.js';
import { useNock } from '../support/nock.js';

useNock();

const PUBLIC = { SIGNPOSTING_PUBLIC_URL: 'https://pid.example.org/' };
const LANDING = 'https://repo.example.org/item/1';
const url = value(1, 'URL', LANDING);
const TYPED = {
  type: '21.T11148/1c699a5d1b4ad3ba4956',
  license: '21.T11148/2f314c8fe5fb6a0063a8',
  item: '21.T11148/b8457812905b83046284',
  describedby: '21.T11148/d0773859091aeb451528',
  profile: '21.T11148/076759916209e5d62bd5',
};
const facts = [
  value(2, TYPED.type, 'https://schema.org/Dataset'),
  value(3, TYPED.license, 'https://spdx.org/licenses/CC-BY-4.0.html'),
  value(4, TYPED.item, 'https://repo.example.org/item/1/data.csv'),
  value(5, TYPED.describedby, '21.T11148/meta'),
  value(6, TYPED.profile, '21.T11148/b9b76f887845e32d29f7'),
  value(8, 'ORCID', 'https://orcid.org/0000-0002-1825-0097'),
];
const AUTHORS = {
  SIGNPOSTING_TYPES: [
    ...Object.entries(TYPED).map(([relation, type]) => `${type}=${relation}`),
    'ORCID=author',
  ].join(),
};

const linksIn = (header: string | string[] | undefined) => LinkHeader.parse(String(header ?? '')).refs;
const relationsOf = (links: { rel: string }[]) =>
  Object.fromEntries(
    [...new Set(links.map(({ rel }) => rel))].map((rel) => [
      rel,
      links.filter((link) => link.rel === rel).length,
    ]),
  );

interface LinkTarget {
  href: string;
  type?: string;
  profile?: string[];
}
type Context = { anchor: string } & Record<string, LinkTarget[]>;

async function linksetOf(leads: Leads, suffix: string): Promise<Context[]> {
  const { body } = await leads.get(`${suffix}?action=linkset&format=json`);
  return (JSON.parse(body.toString()) as { linkset: Context[] }).linkset;
}

describe('signposting', () => {
  it('is disabled by default', async () => {
    const leads = await startLeads({ a: [url], page: [value(1, 'DESC', 'x')] });
    expect((await leads.get('a')).headers.link).toBeUndefined();
    expect((await leads.get('page')).headers.link).toBeUndefined();
    const { status, headers } = await leads.get('page?action=linkset');
    expect([status, headers['content-type']]).toEqual([200, 'text/html;charset=utf-8']);
  });

  it.each(['T', '=license', 'T=cite-as', 'T x=license'])(
    'rejects the configured type %j',
    (SIGNPOSTING_TYPES) => {
      expect(problemsFrom({ env: { SIGNPOSTING_TYPES } })[0]).toContain('is not allowed; give pairs such as');
    },
  );

  describe('on a redirect', () => {
    it('links to the persistent URI, the record and the link set, including in prepared responses', async () => {
      const leads = await startLeads({ a: [url] }, PUBLIC);
      for (let times = 0; times < 4; times++) {
        const { status, headers } = await leads.get('a');
        expect([status, headers.location]).toEqual([302, LANDING]);
        expect(linksIn(headers.link)).toEqual([
          { uri: 'https://hdl.handle.net/21.T11998/a', rel: 'cite-as', anchor: LANDING },
          {
            uri: 'https://pid.example.org/21.T11998/a?action=linkset&format=json',
            rel: 'linkset',
            type: 'application/linkset+json',
          },
          {
            uri: 'https://pid.example.org/api/handles/21.T11998/a',
            rel: 'describedby',
            type: 'application/json',
            anchor: LANDING,
          },
        ]);
      }
    });

    it('has the same links for HEAD and GET', async () => {
      const leads = await startLeads({ a: [url, ...facts], page: facts }, PUBLIC);
      for (const path of [
        'a',
        'a?noredirect',
        'page',
        'a?action=linkset',
        'a?action=linkset&format=constructor',
        'a',
      ]) {
        // The first request fills the cache, because the page shows whether the record came from memory.
        await leads.get(path);
        const get = await leads.get(path);
        const head = await leads.get(path, {}, { method: 'HEAD' });
        expect([head.status, head.headers.link, head.headers['content-length']]).toEqual([
          get.status,
          get.headers.link,
          get.headers['content-length'],
        ]);
      }
    });

    it('uses doi.org for the persistent URI of a DOI', async () => {
      const leads = await startLeads({ '10.5072/a': [url] }, PUBLIC);
      const { headers } = await leads.ask('/10.5072/a');
      expect(linksIn(headers.link)[0]?.uri).toBe('https://doi.org/10.5072/a');
    });

    it('uses hdl.handle.net for the persistent URI of any other handle', async () => {
      const leads = await startLeads({ a: [url] }, PUBLIC);
      expect(linksIn((await leads.get('a')).headers.link)[0]?.uri).toBe('https://hdl.handle.net/21.T11998/a');
    });

    it('omits relations that the record’s own links contain', async () => {
      const links =
        '<links><location rel="cite-as" href="https://cite.example.org/"/><location rel="item license" href="https://l.example.org/"/></links>';
      const leads = await startLeads({ a: [url, ...facts, value(9, '10320/links', links)] }, PUBLIC);
      for (let times = 0; times < 3; times++) {
        const found = linksIn((await leads.get('a')).headers.link);
        expect(found.filter(({ rel }) => rel === 'cite-as').map(({ uri }) => uri)).toEqual([
          'https://cite.example.org/',
        ]);
        expect(relationsOf(found)).toMatchObject({ license: 1, item: 1, type: 1 });
      }
      // The link set contains the record's own links.
      const [landing] = await linksetOf(leads, 'a');
      expect(Object.keys(landing ?? {})).toEqual([
        ...['anchor', 'type', 'describedby', 'cite-as', 'item', 'license'],
      ]);
      expect(landing?.['cite-as']).toEqual([{ href: 'https://cite.example.org/' }]);
    });

    it('has only the persistent URI and the link set for more than 60 links, which are all in the link set', async () => {
      const located = (count: number): string =>
        `<locations>${Array.from({ length: count }, (_, at) => `<location rel="alternate" weight="0" href="https://a.example.org/${at}"/>`).join('')}</locations>`;
      const leads = await startLeads(
        // Next to these are cite-as, linkset and describedby.
        { few: [value(1, '10320/loc', located(57))], many: [value(1, '10320/loc', located(58))] },
        PUBLIC,
      );
      for (let times = 0; times < 3; times++) {
        const few = linksIn((await leads.get('few')).headers.link);
        expect(few).toHaveLength(60);
        expect(few.slice(0, 2).map(({ rel }) => rel)).toEqual(['cite-as', 'linkset']);
        const many = linksIn((await leads.get('many')).headers.link);
        expect(many.map(({ rel }) => rel)).toEqual(['cite-as', 'linkset']);
      }
      const alternates = (await linksetOf(leads, 'many')).flatMap(({ alternate = [] }) => alternate);
      expect(new Set(alternates.map(({ href }) => href)).size).toBe(58);
    });

    it('has no typed links for a target that is not http(s) or is too long', async () => {
      const long = `https://example.org/${'x'.repeat(2000)}`;
      const leads = await startLeads(
        { mail: [value(1, 'URL', 'mailto:a@example.org')], long: [value(1, 'URL', long)] },
        PUBLIC,
      );
      for (const suffix of ['mail', 'long']) {
        const { status, headers } = await leads.get(suffix);
        expect([status, relationsOf(linksIn(headers.link))]).toEqual([302, { linkset: 1 }]);
        expect(await linksetOf(leads, suffix)).toEqual([]);
      }
    });
  });

  describe('on the record page', () => {
    it('links to the target as `describes` if the record has a URL', async () => {
      const leads = await startLeads({ a: [url, ...facts] }, PUBLIC);
      const found = linksIn((await leads.get('a?noredirect')).headers.link);
      expect(relationsOf(found)).toEqual({ linkset: 2, describes: 1 });
      expect(found.find(({ rel }) => rel === 'describes')).toEqual({ uri: LANDING, rel: 'describes' });
    });
  });

  // Cardinalities for a landing page: https://signposting.org/FAIR, "Level 1" and "Level 2".
  describe('of a handle without a target', () => {
    it('has the level 1 links of the FAIR profile', async () => {
      const leads = await startLeads({ page: facts }, { ...PUBLIC, ...AUTHORS });
      const found = linksIn((await leads.get('page')).headers.link);
      expect(relationsOf(found)).toEqual({
        'cite-as': 1,
        describedby: 2,
        type: 2,
        item: 1,
        author: 1,
        license: 1,
        linkset: 2,
      });
      expect(found.filter(({ rel }) => rel === 'type').map(({ uri }) => uri)).toEqual([
        'https://schema.org/Dataset',
        'https://schema.org/AboutPage',
      ]);
      expect(found.every((link) => !('anchor' in link) && URL.canParse(link.uri))).toBe(true);
      expect(found.find(({ rel }) => rel === 'describedby')).toMatchObject({
        type: 'application/json',
        profile: 'https://hdl.handle.net/21.T11148/b9b76f887845e32d29f7',
      });
      expect(found.find(({ rel }) => rel === 'license')?.uri).toBe('https://spdx.org/licenses/CC-BY-4.0');
    });

    it('has the level 2 links of the FAIR profile', async () => {
      const leads = await startLeads({ page: facts }, { ...PUBLIC, ...AUTHORS });
      const page = 'https://pid.example.org/21.T11998/page';
      const record = 'https://pid.example.org/api/handles/21.T11998/page';
      const data = 'https://repo.example.org/item/1/data.csv';
      expect(await linksetOf(leads, 'page')).toEqual([
        {
          anchor: page,
          'cite-as': [{ href: 'https://hdl.handle.net/21.T11998/page' }],
          type: [{ href: 'https://schema.org/Dataset' }, { href: 'https://schema.org/AboutPage' }],
          license: [{ href: 'https://spdx.org/licenses/CC-BY-4.0' }],
          describedby: [
            {
              href: record,
              type: 'application/json',
              profile: ['https://hdl.handle.net/21.T11148/b9b76f887845e32d29f7'],
            },
            { href: 'https://hdl.handle.net/21.T11148/meta' },
          ],
          author: [{ href: 'https://orcid.org/0000-0002-1825-0097' }],
          item: [{ href: data }],
        },
        { anchor: record, describes: [{ href: page }] },
        { anchor: data, collection: [{ href: page, type: 'text/html' }] },
      ]);
    });
  });

  describe('as a link set', () => {
    it('has the same links as text and as JSON', async () => {
      const leads = await startLeads({ a: [url, ...facts] }, PUBLIC);
      const { headers, body } = await leads.get('a?action=linkset&format=text');
      expect(headers['content-type']).toBe('application/linkset');
      const contexts = await linksetOf(leads, 'a');
      const inJson = contexts.flatMap(({ anchor, ...relations }) =>
        Object.entries(relations).flatMap(([rel, targets]) =>
          targets.map(({ href, type, profile }) => ({
            uri: href,
            rel,
            ...(type !== undefined && { type }),
            ...(profile !== undefined && { profile: profile[0] }),
            anchor,
          })),
        ),
      );
      expect(inJson.length).toBeGreaterThan(6);
      expect(linksIn(body.toString())).toEqual(inJson);
    });

    it('has the format that Accept prefers, and JSON by default', async () => {
      const leads = await startLeads({ a: [url] }, PUBLIC);
      const typeFor = async (accept?: string): Promise<unknown> => {
        const { headers } = await leads.get('a?action=linkset', accept === undefined ? {} : { accept });
        expect(headers.vary).toContain('Accept');
        return headers['content-type'];
      };
      expect(await typeFor()).toBe('application/linkset+json');
      expect(await typeFor('text/html')).toBe('application/linkset+json');
      expect(await typeFor('application/linkset')).toBe('application/linkset');
      expect(await typeFor('application/linkset;q=0.5, application/linkset+json')).toBe(
        'application/linkset+json',
      );
    });

    it("has the attributes of the record's own links", async () => {
      const links = [
        '<location rel="Item anchor" href="https://l.example.org/" hreflang="de" title="Ä" titlelang="de" media-type="text/csv"/>',
        '<location rel="next" href="https://m.example.org/" anchor="https://n.example.org/" title="&quot;x&quot;"/>',
      ];
      const leads = await startLeads(
        {
          a: [
            url,
            value(9, '10320/links', `<links>${links.join('')}</links>`),
            value(
              10,
              '10320/headers',
              'Link: <../x>; rel="__proto__"; anchor="https://o.example.org/"; __proto__="y"',
            ),
          ],
        },
        PUBLIC,
      );
      const contexts = await linksetOf(leads, 'a');
      expect(contexts.find(({ anchor }) => anchor === LANDING)?.['item']).toEqual([
        {
          href: 'https://l.example.org/',
          type: 'text/csv',
          hreflang: ['de'],
          'title*': [{ value: 'Ä', language: 'de' }],
        },
      ]);
      expect(contexts.find(({ anchor }) => anchor === 'https://n.example.org/')?.['next']).toEqual([
        { href: 'https://m.example.org/', title: '"x"' },
      ]);
      expect(contexts.map(({ anchor }) => anchor)).toContain('https://o.example.org/');
      const { body } = await leads.get('a?action=linkset&format=text');
      expect(body.toString()).toContain(
        `<https://l.example.org/>; rel="Item anchor"; type="text/csv"; hreflang="de"; title*=UTF-8'de'%C3%84; anchor="${LANDING}"`,
      );
    });

    it('repeats a link for at most 20 different relations, with at most 20 attributes', async () => {
      const names = (count: number, before: string): string[] =>
        Array.from({ length: count }, (_, at) => `${before}${at}`);
      const relations = ['next', ...names(100, 'r')];
      const attributes = names(100, 'a').map((name) => `;${name}=x`);
      const link = `<>;rel="next ${relations.join(' ')} next"${attributes.join('')}`;
      const leads = await startLeads({ a: [url, value(2, '10320/headers', `Link: ${link}`)] }, PUBLIC);
      const own = (await linksetOf(leads, 'a'))[0]!;
      const repeated = Object.entries(own).filter(([relation]) => relations.includes(relation));
      expect(repeated.map(([relation]) => relation)).toEqual(relations.slice(0, 20));
      const target = Object.fromEntries(names(20, 'a').map((name) => [name, ['x']]));
      expect(new Set(repeated.map(([, targets]) => JSON.stringify(targets)))).toEqual(
        new Set([JSON.stringify([{ href: '', ...target }])]),
      );
    });

    it('leaves out links beyond 256 KiB', async () => {
      const target = `https://example.org/${'x'.repeat(6000)}`;
      const links = value(2, '10320/headers', `Link: ${'<>;rel=a,'.repeat(800)}`);
      const leads = await startLeads({ a: [value(1, 'URL', target), links] }, PUBLIC);
      const own = (await linksetOf(leads, 'a'))[0]!;
      expect([own.anchor, own['a']?.length]).toEqual([target, 43]);
    });

    it('returns 304 for a matching If-None-Match', async () => {
      const leads = await startLeads({ a: [url] }, PUBLIC);
      const { headers } = await leads.get('a?action=linkset');
      expect(headers['cache-control']).toBe('no-cache');
      const again = await leads.get('a?action=linkset', { 'if-none-match': headers.etag ?? '' });
      expect(again.status).toBe(304);
    });

    it('returns 404 for a handle that does not exist', async () => {
      const leads = await startLeads({}, PUBLIC);
      expect((await leads.get('nothing?action=linkset')).status).toBe(404);
    });

    it.each(['application/linkset+json', 'application/linkset'])(
      'returns problem JSON, no page, for a handle that does not exist to a client of %s',
      async (accept) => {
        const leads = await startLeads({}, PUBLIC);
        const { status, headers } = await leads.get('nothing?action=linkset', { accept });
        expect([status, headers['content-type']]).toEqual([404, 'application/problem+json']);
      },
    );

    it('contains the links of an alias’s final handle', async () => {
      const leads = await startLeads({ a: [url], alias: [value(1, 'HS_ALIAS', '21.T11998/a')] }, PUBLIC);
      expect((await linksetOf(leads, 'alias'))[0]?.['cite-as']).toEqual([
        { href: 'https://hdl.handle.net/21.T11998/a' },
      ]);
    });
  });

  describe('from hostile values', () => {
    it('has no link for text that is neither an http(s) URL nor a handle', async () => {
      const texts = [
        'Apache 2.0',
        'javascript:alert(1)',
        'ftp://example.org/',
        'https://',
        '//example.org',
        '',
      ];
      const leads = await startLeads(
        { page: texts.map((text, at) => value(at + 1, TYPED.license, text)) },
        PUBLIC,
      );
      expect(relationsOf(linksIn((await leads.get('page')).headers.link))['license']).toBeUndefined();
    });

    it('drops control characters and escapes delimiters', async () => {
      const leads = await startLeads(
        { page: [value(1, TYPED.item, 'https://e.example.org/a\r\nSet-Cookie: x>; rel="cite-as"\u0085')] },
        PUBLIC,
      );
      const items = linksIn((await leads.get('page')).headers.link).filter(({ rel }) => rel === 'item');
      expect(items.map(({ uri }) => uri)).toEqual([
        'https://e.example.org/aSet-Cookie:%20x%3E;%20rel=%22cite-as%22',
      ]);
    });

    it('has a bounded number of links and a bounded length', async () => {
      const many = Array.from({ length: 5000 }, (_, at) =>
        value(at + 1, TYPED.item, `https://e.example.org/${at}`),
      );
      const leads = await startLeads({ a: [...many, { ...url, index: 9000 }], page: many }, PUBLIC);
      for (const suffix of ['a', 'page', 'a?noredirect']) {
        const { headers } = await leads.get(suffix);
        expect(String(headers.link).length).toBeLessThan(8001);
        expect(relationsOf(linksIn(headers.link))['linkset']).toBeGreaterThan(0);
      }
      expect((await linksetOf(leads, 'page'))[0]?.['item']).toHaveLength(100);
    });
  });
});
