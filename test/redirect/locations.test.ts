// A 10320/loc value contains several locations of one object.
import { describe, expect, test, vi } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const place = (name: string, attributes = ''): string =>
  `<location href="https://${name}.example.org/" ${attributes}/>`;
const locations = (places: string[], attributes = ''): string =>
  `<locations ${attributes}>${places.join('')}</locations>`;
const at = (name: string): [number, string] => [302, `https://${name}.example.org/`];
const plain = value(2, 'URL', 'https://plain.example.org/');

const records = {
  loc: [
    value(
      1,
      '10320/LOC',
      locations(
        [
          place('zero', 'id="0" weight="0" view="special" lang="de"'),
          place('one', 'id="1" weight="1" lang="en"'),
          place('us', 'id="2" weight="0" country="us" lang="en"'),
        ],
        'chooseby="locatt,country,weighted"',
      ),
    ),
    plain,
  ],
};

describe('locations (10320/loc)', () => {
  test('redirect to the only location with a positive weight', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('loc')).toEqual(at('one'));
    expect(await leads.to('loc?urlappend=%3Fa%3D1')).toEqual([302, 'https://one.example.org/?a=1']);
    expect(await leads.to('loc?type=URL')).toEqual(at('plain'));
    expect(await leads.to('loc?index=1')).toEqual(at('one'));
  });

  test('are selected by any attribute with locatt, which is ignored when nothing matches', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('loc?locatt=id:0')).toEqual(at('zero'));
    expect(await leads.to('loc?locatt=view:special')).toEqual(at('zero'));
    expect(await leads.to('loc?locatt=country:us')).toEqual(at('us'));
    expect(await leads.to('loc?locatt=lang:en&locatt=country:us')).toEqual(at('us'));
    expect(await leads.to('loc?locatt=lang:en')).toEqual(at('one'));
    expect(await leads.to('loc?locatt=id:99')).toEqual(at('one'));
    expect(await leads.to('loc?locatt=view')).toEqual(at('zero'));
    expect(await leads.to('loc?locatt=%20view%20:special')).toEqual(at('zero'));
    expect(await leads.to('loc?locatt=id:99;locatt=id:2')).toEqual(at('us'));
    expect(await leads.to('loc?locatt=mode:legacy')).toEqual(at('plain'));
  });

  test('are selected by country if a location matches', async () => {
    const abroad = locations([place('us', 'country=" US "'), place('anywhere', 'weight="0"')]);
    const leads = await startLeads({ ...records, abroad: [value(1, '10320/loc', abroad)] });
    expect(await leads.to('loc?country=US')).toEqual(at('us'));
    expect(await leads.to('loc?country=de')).toEqual(at('one'));
    for (const query of ['', '?country=us', '?country=de', '?country=']) {
      expect(await leads.to(`abroad${query}`), query).toEqual(at('us'));
    }
  });

  test('are selected by client address', async () => {
    const listOf = (addresses: string): unknown[] => [
      value(1, '10320/loc', locations([place('near', `weight="0" addresses="${addresses}"`), place('far')])),
    ];
    const texts = ['127.0.0.1', '10.0.0.0/8, 127.0.0.0/8', '', ' 127.0.0.1/33 ', '0.0.0.0/0'];
    const others = ['10.0.0.0/8', '::1', 'localhost', '127.0.0.1/x', '::/0'];
    const records = Object.fromEntries([...texts, ...others].map((text, number) => [number, listOf(text)]));
    const leads = await startLeads(records);
    for (const number of texts.keys())
      expect(await leads.to(String(number)), texts[number]).toEqual(at('near'));
    for (const number of others.keys()) {
      expect(await leads.to(String(texts.length + number)), others[number]).toEqual(at('far'));
    }
    expect((await leads.get('0')).headers['cache-control']).toMatch(/^private/);
  });

  test('are selected by the highest score, which may be negative only for a single candidate', async () => {
    const scored = (...scores: string[]): unknown[] => [
      value(
        1,
        '10320/loc',
        locations(scores.map((score, number) => place(`s${number}`, `score="${score}"`))),
      ),
    ];
    const leads = await startLeads({
      high: scored('1.5', '1.25', 'x'),
      negative: scored('-1', '-2'),
      beside: [...scored('-1', '-2'), plain],
      alone: scored('-1'),
      near: [
        value(
          1,
          '10320/loc',
          locations([place('near', 'score="-1" addresses="127.0.0.1"'), place('far', 'score="2"')]),
        ),
      ],
    });
    expect(await leads.to('high')).toEqual(at('s0'));
    expect(await leads.to('negative')).toEqual([200, undefined]);
    expect(await leads.to('beside')).toEqual(at('plain'));
    expect(await leads.to('alone')).toEqual(at('s0'));
    expect(await leads.to('near')).toEqual(at('near'));
  });

  test('are selected in the order of chooseby', async () => {
    const places = [
      place('a', 'id="a" country="us" weight="0"'),
      place('b', 'id="b" weight="0"'),
      place('c', 'weight="1"'),
    ];
    const chosenBy = (attributes: string): unknown[] => [
      value(1, '10320/loc', locations(places, attributes)),
    ];
    const leads = await startLeads({
      default: chosenBy(''),
      weighted: chosenBy('chooseby="weighted,locatt,country"'),
      'only-locatt': chosenBy('chooseby=" locatt "'),
      newer: chosenBy('choose_by="locatt" chooseby="weighted"'),
      unknown: chosenBy('chooseby="moon,locatt"'),
    });
    expect(await leads.to('default?locatt=id:b')).toEqual(at('b'));
    expect(await leads.to('weighted?locatt=id:b&country=us')).toEqual(at('c'));
    expect(await leads.to('only-locatt?country=us')).toEqual(at('c'));
    expect(await leads.to('only-locatt?locatt=id:b')).toEqual(at('b'));
    expect(await leads.to('newer?locatt=id:a')).toEqual(at('a'));
    expect(await leads.to('unknown?locatt=id:a')).toEqual(at('a'));
  });

  test('set the redirect status with http_sc', async () => {
    const places = [301, 302, 303, 307, 308, 200, 404].map((code) =>
      place(`s${code}`, `id="${code}" http_sc="${code}"`),
    );
    const leads = await startLeads({ kinds: [value(1, '10320/loc', locations(places))] });
    for (const code of [301, 302, 303, 307, 308]) {
      for (let times = 0; times < 3; times++) {
        expect(await leads.to(`kinds?locatt=id:${code}`)).toEqual([code, `https://s${code}.example.org/`]);
      }
    }
    for (const code of [200, 404]) expect(await leads.to(`kinds?locatt=id:${code}`)).toEqual(at(`s${code}`));
  });

  test('fall back to the URL value for an empty or malformed list', async () => {
    const texts = {
      cut: '<locations><location href=',
      unclosed: '<locations><location href="https://a.example.org/><location/></locations>',
      none: '<locations></locations>',
      empty: '',
      text: 'https://a.example.org/',
      doctype: '<!DOCTYPE locations><locations><location href="https://a.example.org/"/></locations>',
      deep: '<locations><group><location href="https://a.example.org/"/></group></locations>',
    };
    const leads = await startLeads(
      Object.fromEntries(
        Object.entries(texts).map(([name, xml]) => [name, [value(1, '10320/loc', xml), plain]]),
      ),
    );
    for (const name of Object.keys(texts)) {
      expect(await leads.to(name), name).toEqual(at('plain'));
      expect((await leads.get(`${name}?noredirect`)).status).toBe(200);
      expect((await leads.get(`${name}?action=showurls`)).text).toContain('mode="legacy" weight="');
    }
  });

  test('are replaced by the record page when the selected location has no address', async () => {
    const leads = await startLeads({
      nowhere: [value(1, '10320/loc', '<locations><location weight="1"/></locations>'), plain],
    });
    expect(await leads.to('nowhere')).toEqual([200, undefined]);
  });

  test('are combined from all 10320/loc values', async () => {
    const leads = await startLeads({
      several: [
        value(1, '10320/loc', '<locations'),
        value(5, '10320/loc.x', locations([place('second', 'id="2"')], 'http_sc="303"')),
        value(3, '10320/loc', locations([place('third', 'id="3"')], 'http_sc="307"')),
      ],
    });
    expect(await leads.to('several?locatt=id:2')).toEqual([303, 'https://second.example.org/']);
    expect(await leads.to('several?locatt=id:3')).toEqual([303, 'https://third.example.org/']);
  });

  test('include URL values according to no_legacy and urlWeight', async () => {
    const zero = place('zero', 'weight="0"');
    const leads = await startLeads({
      without: [value(1, '10320/loc', locations([zero], 'no_legacy="Yes"')), plain],
      heavy: [value(1, '10320/loc', locations([zero], 'urlWeight="2"')), plain],
      nothing: [value(1, '10320/loc', locations([], 'no_legacy="1"')), plain],
    });
    expect(await leads.to('without')).toEqual(at('zero'));
    expect(await leads.to('heavy')).toEqual(at('plain'));
    expect(await leads.to('nothing')).toEqual([200, undefined]);
  });

  test('give every URL value the same weight', async () => {
    const one = locations([place('one')], 'urlWeight="1" urlSubtypeWeight="1"');
    const linked = locations([place('linked', 'rel="item"')]);
    const url = (index: number, type: string): unknown =>
      value(index, type, `https://u${index}.example.org/`);
    const leads = await startLeads({
      urls: [url(1, 'URL'), value(2, '10320/loc', one), url(3, 'URL')],
      subtypes: [url(1, 'URL.A'), value(2, '10320/loc', one), url(3, 'URL.B')],
      both: [url(1, 'URL'), value(2, '10320/loc', one), url(3, 'URL.A'), url(4, 'URL.B')],
      prefix: [url(1, 'URL'), url(2, 'URL')],
      links: [url(1, 'URL'), value(2, '10320/links', linked), url(3, 'URL')],
      '0.NA/21.T11998': [value(3, 'HS_NAMESPACE', '<namespace><locs>21.T11998/own</locs></namespace>')],
      own: [value(1, '10320/loc', locations([place('prefix')]))],
    });
    const weights = async (path: string): Promise<string[]> =>
      (await leads.get(`${path}?action=showurls`)).text.match(/mode="legacy" weight="[^"]*"/g) ?? [];
    expect(await weights('urls')).toEqual(Array(2).fill('mode="legacy" weight="1.0"'));
    expect(await weights('subtypes')).toEqual(Array(2).fill('mode="legacy" weight="1.0"'));
    expect(await weights('both')).toEqual(Array(3).fill('mode="legacy" weight="1.0"'));
    expect(await weights('prefix')).toEqual(Array(2).fill('mode="legacy" weight="1.0"'));
    expect(await weights('links')).toEqual(Array(2).fill('mode="legacy" weight="1.0"'));
    const random = vi.spyOn(Math, 'random');
    for (const [lot, target] of [
      [0.1, 'u1'],
      [0.5, 'u2'],
      [0.9, 'prefix'],
    ] as const) {
      random.mockReturnValue(lot);
      expect(await leads.to('prefix')).toEqual(at(target));
    }
  });

  test('expand the handle in href_template but not in href', async () => {
    const template = (attributes: string): unknown[] => [
      value(1, '10320/loc', `<locations><loc_template ${attributes}/></locations>`),
    ];
    const leads = await startLeads({
      "a?b#c ä~'": template('href_template="https://data.example.org/{hdl}?from={hdl:path}&x={HDL}"'),
      plain: template('href="https://data.example.org/{hdl}" href_template="https://x.example.org/"'),
      long: template(`href_template="https://data.example.org/${'{hdl}'.repeat(1000)}"`),
    });
    expect(await leads.to('a%3Fb%23c%20%C3%A4~%27')).toEqual([
      302,
      'https://data.example.org/21.T11998%2Fa%3Fb%23c%20%C3%A4%7E%27?from=21.T11998/a%3Fb%23c%20%C3%A4~%27&x=%7BHDL%7D',
    ]);
    expect(await leads.to('plain')).toEqual([302, 'https://data.example.org/%7Bhdl%7D']);
    expect(await leads.to('long')).toEqual([200, undefined]);
  });
});

test('a list decides also when the server escapes the slash of its type in the JSON', async () => {
  const values = [value(1, '10320/loc', locations([place('one')])), plain];
  const record = JSON.stringify(recordOf(values).body).replace('10320/', String.raw`10320\/`);
  mockUpstream((target) =>
    target.includes('0.NA') ? { status: 404, body: { responseCode: 100 } } : { status: 200, body: record },
  );
  const { ask } = await startProxy();
  for (const _ of ['miss', 'hit'])
    expect((await ask(`/${HANDLE}`)).headers.location).toBe('https://one.example.org/');
});
