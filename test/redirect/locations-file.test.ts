// A file gives locations to prefixes whose record the operator cannot change.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadStartConfig } from '../../src/app/config.js';
import { createReload } from '../../src/app/serve.js';
import { createLogger } from '../../src/observe/logger.js';
import { PREFIX, startLeads, value } from '../support/leads.js';
import { readDocument } from '../support/markdown.js';
import { useNock } from '../support/nock.js';
import { newFolder } from '../support/folder.js';

useNock();

const CONNEG =
  '<location http_role="conneg" weight="0" href_template="https://data.example.org/{hdl}" rel="describedby"/>';
const listed = (prefix: string, xml: string): string =>
  `# Written by hand\n${prefix}: |\n  <locations>\n    <!-- <location href="https://old.example.org/"/> -->\n    ${xml}\n  </locations>\n`;
const fileWith = (text: string, path = join(newFolder(), 'locations.yaml')): string => {
  writeFileSync(path, text);
  return path;
};

const url = [value(1, 'URL', 'https://url.example.org/')];
const ownList = (name: string): unknown[] => [
  value(1, '10320/loc', `<locations><location href="https://${name}.example.org/"/></locations>`),
];
const RECORD = `0.NA/${PREFIX}`;
const namespace = (xml: string): unknown[] => [value(3, 'HS_NAMESPACE', `<namespace>${xml}</namespace>`)];
const CSL = { headers: { Accept: 'application/vnd.citationstyles.csl+json' } };
const DATA = [302, `https://data.example.org/${PREFIX}%2Furl`];
const PLAIN = [302, 'https://url.example.org/'];

const startWith = (text: string, records: Record<string, unknown[]> = {}) =>
  startLeads({ url, other: url, ...records }, { REDIRECT_LOCATIONS_FILE: fileWith(text) });

describe('a list in the file', () => {
  it('negotiates the redirects of its prefix, as the list of a prefix record does', async () => {
    const leads = await startWith(listed(PREFIX.toLowerCase(), CONNEG));
    for (let times = 0; times < 3; times++) {
      expect(await leads.to('url', CSL)).toEqual(DATA);
      expect(await leads.to('url')).toEqual(PLAIN);
    }
    const { headers } = await leads.get('url');
    expect(headers['vary']).toMatch(/^Accept, /);
    expect(headers['link']).toBe(`<https://data.example.org/${PREFIX}%2Furl>; rel="describedby"`);
    expect((await leads.get('url?action=showurls')).text).toContain('https://data.example.org/');
  });

  it('leaves other prefixes, and records, as their server has them', async () => {
    const record = namespace('<contact>a@example.org</contact>');
    const leads = await startWith(listed('21.T1', CONNEG), { [RECORD]: record });
    expect(await leads.to('url', CSL)).toEqual(PLAIN);
    const own = await startWith(listed(PREFIX, CONNEG), { [RECORD]: record });
    expect(await own.to('url', CSL)).toEqual(DATA);
    const { text } = await own.ask(`/api/handles/${RECORD}`);
    expect(JSON.parse(text)).toMatchObject({ handle: RECORD, values: record });
  });

  it('replaces the lists that the prefix record names, but not those of all prefixes', async () => {
    const leads = await startWith(listed(PREFIX, CONNEG), {
      [RECORD]: namespace(`<locs>${PREFIX}/named</locs>`),
      named: ownList('named'),
      '0.NA/0.NA': namespace(`<locs>${PREFIX}/all</locs>`),
      all: [
        value(
          1,
          '10320/loc',
          '<locations><location id="all" weight="0" href="https://all.example.org/"/></locations>',
        ),
      ],
    });
    expect(await leads.to('url?locatt=id:all')).toEqual([302, 'https://all.example.org/']);
    expect(await leads.to('url', CSL)).toEqual(DATA);
    expect((await leads.get('url?action=showurls')).text).not.toContain('named');
  });

  it('does not open an inactive prefix', async () => {
    const closed = await startWith(listed(PREFIX, CONNEG), {
      [RECORD]: namespace('<status>inactive</status>'),
    });
    expect((await closed.get('url')).status).toBe(404);
  });

  it('negotiates as the guide says', async () => {
    const [, example = ''] = /^```yml\n([^]*?)^```$/m.exec(readDocument('config/redirects.md')) ?? [];
    const leads = await startWith(example.replace('20.500.1', PREFIX));
    expect(await leads.to('url', { headers: { Accept: 'application/rdf+xml' } })).toEqual(DATA);
    expect(await leads.to('url', { headers: { Accept: 'text/html' } })).toEqual(PLAIN);
  });

  it('may include the list of a handle', async () => {
    const leads = await startWith(listed(PREFIX, '<include>21.T11998/shared</include>'), {
      shared: [value(1, '10320/loc', `<locations>${CONNEG}</locations>`)],
    });
    expect(await leads.to('url', CSL)).toEqual(DATA);
  });

  it('is ignored by a record with no_nslocs', async () => {
    const leads = await startWith(listed(PREFIX, CONNEG), {
      alone: [
        value(
          1,
          '10320/loc',
          '<locations no_nslocs="yes"><location href="https://own.example.org/"/></locations>',
        ),
      ],
    });
    expect(await leads.to('alone', CSL)).toEqual([302, 'https://own.example.org/']);
  });

  it('is replaced by a reload, also for redirects that were prepared', async () => {
    const file = fileWith(listed('21.T1', CONNEG));
    const env = { REDIRECT_LOCATIONS_FILE: file };
    const leads = await startLeads({ url }, env);
    for (let times = 0; times < 3; times++) expect(await leads.to('url', CSL)).toEqual(PLAIN);
    const readFile = (): string => listed(PREFIX, CONNEG);
    const start = loadStartConfig({ env: { ...env, UPSTREAM_URL: 'http://upstream.test:8000' }, readFile });
    fileWith(readFile(), file);
    createReload(start.config, createLogger({ level: 'silent' }), leads.app.reload)(() => start);
    expect(await leads.to('url', CSL)).toEqual(DATA);
  });
});

describe('a bad file', () => {
  const startWithFile = (text: string) => () =>
    loadStartConfig({
      env: { UPSTREAM_URL: 'http://upstream.test:8000', REDIRECT_LOCATIONS_FILE: 'locations.yaml' },
      readFile: () => text,
    });
  const tooMany = Array.from({ length: 1001 }, (_, at) => `21.T${at}: '<locations/>'`).join('\n');

  it.each([
    ['no mapping', 'a text', 'give 1 to 1000 prefixes'],
    ['nothing', '', 'give 1 to 1000 prefixes'],
    ['too many prefixes', tooMany, 'give 1 to 1000 prefixes'],
    ['invalid YAML', "21.T1: '<locations>", 'locations.yaml cannot be read: line 1, '],
    ['a handle', listed('21.T1/1', CONNEG), '21.T1/1 is no prefix'],
    ['a pattern', listed('21.T1.*', CONNEG), '21.T1.* is no prefix'],
    [
      'a prefix twice',
      `21.T1: '<locations/>'\n21.t1: '<locations/>'`,
      'the list of 21.T1: it has no location',
    ],
    ['a prefix twice', listed('21.T1', CONNEG) + listed('21.t1', CONNEG), '21.t1 is given twice'],
    ['a mapping in a prefix', '21.T1: {a: b}', 'the list of 21.T1 is no text'],
    ['another element', listed('21.T1', '<place href="x"/>'), 'a tag is misspelt or not closed'],
    ['an open tag', listed('21.T1', '<location href="x" '), 'a tag is misspelt or not closed'],
    ['an open quote', listed('21.T1', '<location href="x/>'), 'a tag is misspelt or not closed'],
    ['a document type', `21.T1: '<!DOCTYPE a><locations/>'`, 'a tag is misspelt or not closed'],
    ['HS_NAMESPACE', `21.T1: '<namespace><locs>a/b</locs></namespace>'`, 'a tag is misspelt or not closed'],
    ['no root', `21.T1: '<location href="x"/>'`, 'it is no <locations> element'],
    [
      'a root that is not opened',
      `21.T1: '</locations><location href="x"/></locations>'`,
      'it is no <locations> element',
    ],
    ['a location that is not opened', listed('21.T1', '</location>'), 'it has no location'],
    ['a long list', listed('21.T1', CONNEG.repeat(100)), 'it has more than 10000 characters'],
    [
      'another encoding',
      Buffer.from(listed('21.T1', '<location href="https://data.test/\xfc"/>'), 'latin1').toString(),
      'the list of 21.T1: it is not UTF-8, or has U+FFFD: save the file in UTF-8',
    ],
    [
      'many attributes',
      listed('21.T1', `<location ${'a="" '.repeat(101)}/>`),
      'a tag is misspelt or not closed',
    ],
  ])('with %s ends the start with the cause', (_, text, problem) => {
    expect(startWithFile(text)).toThrow(problem);
    expect(startWithFile(text)).toThrow('redirect.locationsFile');
  });
});
