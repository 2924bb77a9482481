// Accept, Accept-Language and User-Agent select a location and are listed in Vary.
import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const place = (name: string, attributes = 'weight="0"'): string =>
  `<location href="https://${name}.example.org/" ${attributes}/>`;
const list = (...places: string[]): unknown[] => [
  value(1, '10320/loc', `<locations>${places.join('')}</locations>`),
];
const at = (name: string): [number, string] => [302, `https://${name}.example.org/`];

const CSL = 'application/vnd.citationstyles.csl+json';
const negotiated = list(
  place('page', ''),
  place('csl', `weight="0" media-type="${CSL}" http_sc="303"`),
  place('turtle', 'weight="0" ctype="text/turtle"'),
  place('other', 'weight="0" http_role="conneg"'),
);

describe('location content negotiation', () => {
  test('selects a location by ctype and media-type in the quality order of Accept', async () => {
    const leads = await startLeads({ negotiated });
    const accepting = async (accept?: string) =>
      leads.to('negotiated', accept === undefined ? {} : { headers: { Accept: accept } });
    for (let times = 0; times < 2; times++) {
      expect(await accepting(CSL)).toEqual([303, 'https://csl.example.org/']);
      expect(await accepting('text/turtle')).toEqual(at('turtle'));
      expect(await accepting('Text/Turtle; charset=utf-8')).toEqual(at('turtle'));
      expect(await accepting(`${CSL};q=0.4, text/turtle;q=0.5`)).toEqual(at('turtle'));
      expect(await accepting('application/xml, text/turtle')).toEqual(at('turtle'));
      expect(await accepting('application/xml')).toEqual(at('other'));
      expect(await accepting('')).toEqual(at('other'));
      for (const accept of [
        undefined,
        '*/*',
        ',',
        'text/html',
        'text/html,*/*;q=0.8',
        'application/pdf',
        'image/png',
      ]) {
        expect(await accepting(accept), accept).toEqual(at('page'));
      }
    }
    expect(await leads.to('negotiated?locatt=ctype:text/turtle', { headers: { Accept: CSL } })).toEqual(
      at('turtle'),
    );
  });

  test('recognises a browser by User-Agent when Accept names no type', async () => {
    const leads = await startLeads({
      roles: list(
        place('page', ''),
        place('browser', 'weight="0" http_role="browser"'),
        place('program', 'weight="0" http_role="no_conneg"'),
      ),
    });
    const from = async (headers: Record<string, string>) => leads.to('roles', { headers });
    expect(await from({ Accept: 'text/html' })).toEqual(at('browser'));
    expect(await from({ 'User-Agent': 'Mozilla/5.0 (X11)' })).toEqual(at('browser'));
    expect(await from({ Accept: '*/*', 'User-Agent': 'curl/8' })).toEqual(at('program'));
    expect(await from({ Accept: 'text/turtle' })).toEqual(at('page'));
  });

  test('selects a location by exact Accept-Language tags, after Accept', async () => {
    const leads = await startLeads({
      languages: list(
        place('main', ''),
        place('de', 'weight="0" language="de"'),
        place('json', 'weight="0" language="en" ctype="application/json"'),
        place('jde', 'weight="0" language="de" ctype="application/json"'),
      ),
    });
    const speaking = async (language: string, accept = '*/*') =>
      leads.to('languages', { headers: { 'Accept-Language': language, Accept: accept } });
    expect(await speaking('en', 'application/json')).toEqual(at('json'));
    expect(await speaking('en;q=0.5, DE', 'application/json')).toEqual(at('jde'));
    expect(await speaking('fr')).toEqual(at('main'));
    expect(await speaking('de-CH')).toEqual(at('main'));
  });

  test('selects a location by role for action=metadata, and ignores http_role', async () => {
    const leads = await startLeads({
      roles: list(
        place('page', ''),
        place('data', 'role="metadata" weight="0"'),
        place('any', 'http_role="no_conneg" weight="0"'),
      ),
      without: list(place('page', ''), place('any', 'http_role="no_conneg" weight="0"')),
    });
    expect(await leads.to('roles')).toEqual(at('any'));
    for (const query of ['action=metadata', 'action=METADATA']) {
      expect(await leads.to(`roles?${query}`), query).toEqual(at('data'));
    }
    expect(await leads.to('roles?metadata')).toEqual(at('any'));
    expect(await leads.to('without?action=metadata')).toEqual(at('page'));
  });

  test('lists in Vary only the headers that affect the target', async () => {
    const OWN = 'Accept-Encoding, Authorization, Origin';
    const leads = await startLeads({
      negotiated,
      plain: list(place('a', ''), place('b')),
      single: list(place('a', 'http_role="conneg"')),
      languages: list(place('a', ''), place('b', 'weight="0" language="de"')),
      html: list(place('a', ''), place('b', 'weight="0" ctype="text/html"')),
      fixed: [
        value(
          1,
          '10320/loc',
          `<locations choose_by="weighted">${place('a')}${place('b', 'ctype="x"')}</locations>`,
        ),
      ],
    });
    const vary = async (path: string) => (await leads.get(path, { Accept: CSL })).headers.vary;
    for (let times = 0; times < 3; times++) {
      expect(await vary('negotiated')).toBe(`Accept, ${OWN}`);
      for (const path of ['plain', 'single', 'fixed']) expect(await vary(path), path).toBe(OWN);
      expect(await vary('languages')).toBe(`Accept-Language, ${OWN}`);
      expect(await vary('html')).toBe(`Accept, User-Agent, ${OWN}`);
    }
  });
});
