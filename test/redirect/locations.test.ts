// 10320/loc: several places of one object, and how one of them is chosen.
import { expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

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

test('redirects to the only location with a weight', async () => {
  const leads = await startLeads(records);
  expect(await leads.to('loc')).toEqual(at('one'));
  expect(await leads.to('loc?urlappend=%3Fa%3D1')).toEqual([302, 'https://one.example.org/?a=1']);
  expect(await leads.to('loc?type=URL')).toEqual(at('plain'));
  expect(await leads.to('loc?index=1')).toEqual(at('one'));
});

test('locatt selects by any attribute and is skipped without a match', async () => {
  const leads = await startLeads(records);
  expect(await leads.to('loc?locatt=id:0')).toEqual(at('zero'));
  expect(await leads.to('loc?locatt=view:special')).toEqual(at('zero'));
  expect(await leads.to('loc?locatt=country:us')).toEqual(at('us'));
  expect(await leads.to('loc?locatt=lang:en&locatt=country:us')).toEqual(at('us'));
  expect(await leads.to('loc?locatt=lang:en')).toEqual(at('one'));
  expect(await leads.to('loc?locatt=id:99')).toEqual(at('one'));
  expect(await leads.to('loc?locatt=id')).toEqual(at('one'));
  expect(await leads.to('loc?locatt=mode:legacy')).toEqual(at('plain'));
});

test('country selects; locations of other countries are removed', async () => {
  const abroad = locations([place('us', 'country="us"'), place('anywhere'), place('fr', 'country="fr"')]);
  const leads = await startLeads({ ...records, abroad: [value(1, '10320/loc', abroad)] });
  expect(await leads.to('loc?country=US')).toEqual(at('us'));
  expect(await leads.to('loc?country=de')).toEqual(at('one'));
  expect(await leads.to('abroad?country=fr')).toEqual(at('fr'));
  expect(await leads.to('abroad?country=de')).toEqual(at('anywhere'));
  expect(await leads.to('abroad')).toEqual(at('anywhere'));
});

test('chooseby names the selectors and their order', async () => {
  const places = [
    place('a', 'id="a" country="us" weight="0"'),
    place('b', 'id="b" weight="0"'),
    place('c', 'weight="1"'),
  ];
  const chosenBy = (attributes: string): unknown[] => [value(1, '10320/loc', locations(places, attributes))];
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

test('without weights the URL value wins, else any location', async () => {
  const places = locations([place('a', 'weight="0"'), place('b', 'weight="-1"')]);
  const leads = await startLeads({
    both: [value(1, '10320/loc', places), plain],
    alone: [value(1, '10320/loc', places)],
  });
  expect(await leads.to('both')).toEqual(at('plain'));
  expect([at('a'), at('b')]).toContainEqual(await leads.to('alone'));
});

test('http_sc sets the status of the redirect', async () => {
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

test('skips invalid or empty XML for the URL value', async () => {
  const texts = {
    cut: '<locations><location href=',
    open: '<locations><location href="https://a.example.org/"/>',
    none: '<locations></locations>',
    empty: '',
    text: 'https://a.example.org/',
    nowhere: '<locations><location id="1"/><location href=" "/></locations>',
    entity: '<locations><location href="https://a.example.org/&nope;"/></locations>',
    doctype: '<!DOCTYPE locations><locations><location href="https://a.example.org/"/></locations>',
  };
  const leads = await startLeads(
    Object.fromEntries(
      Object.entries(texts).map(([name, xml]) => [name, [value(1, '10320/loc', xml), plain]]),
    ),
  );
  for (const name of Object.keys(texts)) {
    expect(await leads.to(name), name).toEqual(at('plain'));
    expect((await leads.get(`${name}?noredirect`)).status).toBe(200);
    expect((await leads.get(`${name}?action=showurls`)).text).toContain('mode="legacy" weight="1.0"');
  }
});

test('uses the first valid 10320/loc value', async () => {
  const leads = await startLeads({
    two: [
      value(1, '10320/loc', '<locations'),
      value(2, '10320/loc', locations([place('second')])),
      value(3, '10320/loc', locations([place('third')])),
    ],
  });
  expect(await leads.to('two')).toEqual(at('second'));
});

test('fills the handle into href_template', async () => {
  const template =
    '<locations><location href_template="https://data.example.org/{hdl}?from={hdl}"/></locations>';
  const leads = await startLeads({ 'a?b#c ä': [value(1, '10320/loc', template)] });
  const [, location] = await leads.to('a%3Fb%23c%20%C3%A4');
  const handle = '21.T11998/a%3Fb%23c%20%C3%A4';
  expect(location).toBe(`https://data.example.org/${handle}?from=${handle}`);
});

const CSL = 'application/vnd.citationstyles.csl+json';
const negotiated = [
  value(
    1,
    '10320/loc',
    locations([
      place('page'),
      place('csl', `http_role="conneg" media_type="${CSL}" http_sc="303"`),
      place('turtle', 'http_role="conneg" media_type="text/turtle"'),
    ]),
  ),
];

test('Accept selects a conneg location', async () => {
  const leads = await startLeads({ negotiated });
  const accepting = async (accept?: string) =>
    leads.to('negotiated', accept === undefined ? {} : { headers: { Accept: accept } });
  for (let times = 0; times < 2; times++) {
    expect(await accepting(CSL)).toEqual([303, 'https://csl.example.org/']);
    expect(await accepting('text/turtle')).toEqual(at('turtle'));
    expect(await accepting(`text/turtle;q=0.5, ${CSL};q=0.4`)).toEqual(at('turtle'));
    expect(await accepting(`text/turtle;q=0, ${CSL};Q=0.4`)).toEqual([303, 'https://csl.example.org/']);
    for (const accept of [undefined, '', '*/*', 'text/html', 'text/html,*/*;q=0.8', 'application/pdf']) {
      expect(await accepting(accept), accept).toEqual(at('page'));
    }
  }
  expect(await leads.to('negotiated?locatt=media_type:text/turtle')).toEqual(at('turtle'));
});

test('sends Vary: Accept only for records with conneg locations', async () => {
  const leads = await startLeads({ ...records, negotiated });
  for (const accept of [CSL, 'text/html']) {
    const { headers } = await leads.get('negotiated', { Accept: accept });
    expect(headers.vary).toBe('Accept, Accept-Encoding, Authorization, Origin');
  }
  expect((await leads.get('loc', { Accept: CSL })).headers.vary).toBe(
    'Accept-Encoding, Authorization, Origin',
  );
});

test('a conneg location without a media type matches any type but HTML', async () => {
  const role = locations([place('data', 'http_role="conneg"')]);
  const leads = await startLeads({ role: [value(1, '10320/loc', role), plain] });
  expect(await leads.to('role', { headers: { Accept: 'application/json' } })).toEqual(at('data'));
  expect(await leads.to('role', { headers: { Accept: 'text/html' } })).toEqual(at('plain'));
  expect(await leads.to('role')).toEqual(at('plain'));
});
