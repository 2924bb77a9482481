// What reads records and requests for redirects holds for any text: no exception, no bad header, no other host.
import { validateHeaderValue } from 'node:http';
import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { prefersJson, readAccept } from '../../src/redirect/accept.js';
import { appendToUrl, toRedirectUrl } from '../../src/redirect/redirect-url.js';
import { readRedirectQuery } from '../../src/redirect/request.js';
import { selectLocation } from '../../src/redirect/select-location.js';
import { handleInUrl } from '../../src/handle/handle-in-url.js';
import { escapeText, html } from '../../src/html/html.js';
import { writeLocations } from '../../src/redirect/locations.js';
import { parseLocations } from '../../src/redirect/locations.js';
import { texts, values } from '../support/arbitraries.js';

const noise = fc.string({ unit: 'binary', maxLength: 30 });
const pieces = fc.constantFrom(
  ...[
    'http',
    'https',
    'ftp',
    'mailto',
    'javascript',
    ':',
    '//',
    '/',
    '\\',
    '@',
    '?',
    '#',
    '%',
    '%41',
    '%zz',
    '.',
    '[',
  ],
  ...[
    ']',
    '::1',
    ':80',
    ' ',
    '\t',
    '\r\n',
    '\0',
    '"',
    '<',
    '>',
    'example.org',
    'evil.org',
    'bücher.example',
    '漢',
    '。',
  ],
  ...['\ud800', '😀', '\u2028', '\u202e', 'xn--', 'a'.repeat(300)],
);
const jumble = fc
  .array(fc.oneof({ weight: 5, arbitrary: pieces }, noise), { maxLength: 12 })
  .map((some) => some.join(''));
const addresses = fc
  .tuple(
    fc.constantFrom('https://', 'http://', 'HTTPS://', 'ftp://', 'mailto:', ' http://', '', 'javascript:'),
    jumble,
  )
  .map(([scheme, rest]) => scheme + rest);
const anyHost = { allowedHosts: undefined };

describe('an address that is redirected to', () => {
  test.prop([addresses], { numRuns: 3000 })(
    'is a valid header and a valid URL, of an open scheme',
    (value) => {
      const address = toRedirectUrl(value, anyHost);
      if (!address.ok) return;
      const { url } = address;
      expect(url).toMatch(/^(?:https?|ftp|mailto):[\x21-\x7e]*$/i);
      expect(url).not.toMatch(/["<>\\^`{|}]/);
      validateHeaderValue('Location', url);
      expect(URL.canParse(url)).toBe(true);
      expect(['http:', 'https:', 'ftp:', 'mailto:']).toContain(new URL(url).protocol);
      expect(toRedirectUrl(url, anyHost)).toEqual(address);
    },
  );

  test.prop([addresses], { numRuns: 2000 })('is on an allowed host, where hosts are allowed', (value) => {
    const address = toRedirectUrl(value, { allowedHosts: ['example.org', '*.example.org'] });
    if (!address.ok || address.url.toLowerCase().startsWith('mailto:')) return;
    expect(new URL(address.url).hostname).toMatch(/^(?:[^/]+\.)?example\.org\.?$/);
  });

  test.prop([addresses, jumble], { numRuns: 300 })(
    'stays on its host, whatever is appended',
    (value, text) => {
      const base = toRedirectUrl(value, anyHost);
      const whole = appendToUrl(value, text);
      fc.pre(base.ok && whole !== undefined && !/^\s*mailto:/i.test(value));
      const address = toRedirectUrl(whole, anyHost);
      if (!address.ok) return;
      expect(new URL(address.url).origin).toBe(new URL(base.url).origin);
    },
  );
});

const names = fc.stringMatching(/^[a-z][a-z0-9_.-]{0,8}$/);
const xmlText = fc.string({ unit: 'grapheme-ascii', maxLength: 20 });
const attributes = fc
  .dictionary(
    names,
    fc.oneof(xmlText, fc.constantFrom('0', '1', '-1', '1e400', 'us', 'conneg', '\n', 'ä漢😀')),
    { maxKeys: 5 },
  )
  .map((some) => ({ ...some, href: 'https://example.org/' }));
const write = (places: Record<string, string>[]): string =>
  `<locations>${places
    .map(
      (place) =>
        `<location ${Object.entries(place)
          .map(([name, text]) => `${name}="${escapeText(text)}"`)
          .join(' ')}/>`,
    )
    .join('')}</locations>`;
const located = (value: string) => ({ index: 1, type: '10320/loc', data: { format: 'string', value } });

describe('a list of locations', () => {
  test.prop([
    fc.oneof(
      noise,
      jumble,
      fc.string({ unit: fc.constantFrom(...'<>/="\'&;! locationshref'.split(/(?=.)/)) }),
    ),
  ])('is read or passed over, but never an exception', (xml) => {
    for (const text of [
      xml,
      `<locations>${xml}</locations>`,
      `<locations><location href="${xml}"/></locations>`,
    ]) {
      parseLocations(text, '21.T11998/x');
    }
  });

  test.prop([fc.array(attributes, { minLength: 1, maxLength: 6 })])(
    'has every attribute, and sound weights',
    (places) => {
      const read = parseLocations(write(places), 'h');
      expect(read?.locations.map(({ attributes: each }) => Object.fromEntries(each))).toEqual(
        places.map((place) =>
          Object.fromEntries(Object.entries(place).map(([name, text]) => [name, text.replace(/\n/g, ' ')])),
        ),
      );
      for (const { weight } of read?.locations ?? []) {
        expect(weight).toBeGreaterThanOrEqual(0);
        expect(weight).toBeLessThanOrEqual(1e9);
      }
    },
  );

  test.prop([fc.array(attributes, { minLength: 1, maxLength: 6 }), fc.array(values, { maxLength: 4 })])(
    'that is shown is XML with the same meaning',
    (places, others) => {
      const plain = others.filter(({ type }) => type !== '10320/loc');
      const shown = writeLocations([located(write(places)), ...plain], {
        handle: 'h',
        parse: parseLocations,
      });
      const urls = plain.filter(({ type }) => /^url(\.|$)/i.test(type));
      const again = parseLocations(shown, 'h');
      const named = again?.locations.filter(
        ({ attributes: each }) => each.get('mode') !== 'legacy' || each.get('weight') !== '0.0',
      );
      expect(named?.map(({ attributes: each }) => each)).toEqual(
        parseLocations(write(places), 'h')?.locations.map(({ attributes: each }) => each),
      );
      expect(shown.match(/mode="legacy" weight="0\.0"/g) ?? []).toHaveLength(urls.length);
    },
  );

  const wishes = fc.record({
    locationAttributes: fc.array(fc.tuple(names, xmlText), { maxLength: 2 }),
    country: fc.option(fc.constantFrom('us', 'DE', ''), { nil: undefined }),
    accept: fc.option(noise, { nil: undefined }),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }).map((lot) => () => lot),
  });
  const chains = fc.array(fc.constantFrom('locatt', 'country', 'weighted', 'address', 'score', 'x', ''), {
    maxLength: 5,
  });
  test.prop([fc.array(attributes, { maxLength: 6 }), chains, wishes])(
    'always has a choice, when it has any',
    (places, chooseBy, wish) => {
      const locations = parseLocations(write(places), 'h')?.locations ?? [];
      const choice = selectLocation({ chooseBy, locations }, wish);
      expect(choice === undefined).toBe(locations.length === 0);
      if (choice === undefined) return;
      expect(locations).toContain(choice.location);
      if (choice.isRandom) expect(locations.length).toBeGreaterThan(1);
      expect(selectLocation({ chooseBy, locations }, wish)).toEqual(choice);
    },
  );
});

describe('a request', () => {
  const forms = [
    '',
    '/',
    '//',
    'hdl:',
    'DOI:',
    'info:hdl/',
    'urn:hdl:',
    'https://hdl.handle.net/',
    ' \u00a0',
  ];
  test.prop([fc.constantFrom(...forms), fc.stringMatching(/^[0-9.]{1,8}\/[!-9;-~]{1,20}$/)])(
    'means the handle behind its prefix form',
    (form, handle) => {
      expect(handleInUrl(form + handle)).toBe(handle);
    },
  );

  test.prop([noise])('may have any path, query and Accept', (text) => {
    expect(handleInUrl(text)).not.toMatch(/^\s|^\/$/);
    readRedirectQuery(new URLSearchParams(text));
    prefersJson(text);
    const { qualityOf, highest } = readAccept(text);
    for (const quality of [qualityOf('text/html'), highest]) {
      expect(quality).toBeGreaterThanOrEqual(0);
      expect(quality).toBeLessThanOrEqual(1);
    }
  });
});

test.prop([texts])('a text on a page is text', (text) => {
  const written = html`<p title="${text}">${[text, undefined, text]}</p>`.text;
  expect(written.match(/[<>"']/g)?.join('')).toBe('<""><>');
  expect(written).not.toMatch(/&(?!#\d+;)/);
});
