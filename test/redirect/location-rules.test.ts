// These HDLProxy location rules are not in the recordings.
import { describe, expect, test } from 'vitest';
import type { Asked } from '../support/ask.js';
import { type DrawnQuestion, startRecordedLocations } from '../support/location-world.js';

/** A path without a leading slash is a recorded record under 21.T11998. */
type Row = [rule: string, path: string, expected: string, request?: DrawnQuestion];

/** Abbreviates a response: `only` is a 302 to https://only.example.org/; a status alone has no Location. */
function ledBy({ status, headers: { location } }: Asked): string {
  if (location === undefined) return String(status);
  const place = /^https:\/\/([\w-]+)\.example\.org\/?$/.exec(location)?.[1] ?? location;
  return status === 302 ? place : `${status} ${place}`;
}

const accept = (Accept: string): DrawnQuestion => ({ headers: { Accept } });
const speak = (language: string, others = {}): DrawnQuestion => ({
  headers: { 'Accept-Language': language, ...others },
});
const JSON_TYPE = accept('application/json');
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const draw = (random: number): DrawnQuestion => ({ random });

const LEADS: Record<string, Row[]> = {
  applicability: [
    ['a sub-type of 10320/loc counts', 'rec-subtype', 'subtype'],
    ['a record with neither URL nor 10320/loc is shown', '/21.T7NSA/email', '200', JSON_TYPE],
    ['type=URL hides 10320/loc', 'rec-loc?type=URL', 'fallback'],
    ['an alias beside it wins', 'rec-al-loc', '301 /21.T11998/rec-loc', { method: 'HEAD' }],
    ['ignore_aliases has any value', 'rec-al-loc?ignore_aliases=false', 'own'],
    ['ignore_aliases of an alias that is a loop', 'rec-al-loop?ignore_aliases', 'url'],
    ['an alias that is a loop', 'rec-al-loop', '404'],
    ['POST follows an alias', 'rec-talias', 'https://t.example.org/21.T11998%2Frec-tp', { method: 'POST' }],
    ['POST reads the query string', 'rec-loc?locatt=id:0', 'loc0', { method: 'POST' }],
    ['POST reads the form', 'rec-loc', 'loc0', { method: 'POST', headers: FORM, body: 'locatt=id:0' }],
    ['DELETE is 405', 'rec-loc', '405', { method: 'DELETE' }],
    ['noredirect wins over a location', 'rec-loc?noredirect', '200'],
  ],
  'list syntax': [
    ['a root of any name', 'rec-xml45', 'other'],
    ['an XML declaration is passed over, other than on HDLProxy', 'rec-xml33', 'decl'],
    ['a DOCTYPE makes the list empty', 'rec-xml39', 'fallback'],
    ['a namespace prefix is part of the name', 'rec-xml51', 'fallback'],
    ['text before the root is skipped', 'rec-xml87', 'textbefore'],
    ['values without quotes', 'rec-xml57', 'bare'],
    ['the last of two equal attributes counts', 'rec-xml69', 'second'],
    ['entities', 'rec-xml63', 'https://ent.example.org/?a=1&b=%C3%A4%E6%BC%A2%3C%22'],
    ['an element may stay open', 'rec-xml27', 'open'],
    ['an empty list', 'rec-xml15', 'fallback'],
    ['text that is no XML', 'rec-xml21', 'fallback'],
    ['an empty list without a URL value', 'rec-xmlempty2', '200'],
    ['a broken 10320/links is left out', 'rec-links4', 'url'],
    ['a broken list has no locations to show', 'rec-xml25?action=showurls', '200'],
    ['javascript: is not redirected to', 'rec-xml81', '200'],
    ['an empty href is not redirected to', 'rec-xml75', '200'],
    ['an attribute of 100,000 characters', 'rec-m-long', 'a'],
  ],
  'URL values': [
    ['weight 0 beside a URL value is drawn: first half', 'rec-xml9', 'only', draw(0.24)],
    ['weight 0 beside a URL value is drawn: second half', 'rec-xml9', 'fallback', draw(0.26)],
    ['the last of several gets three times the first', 'rec-urlw0', 'fallback', draw(0.3)],
    ['no_legacy="yes"', 'rec-leg114', 'loc', draw(0.99)],
    ['no_legacy="TRUE"', 'rec-leg120', 'loc', draw(0.99)],
    ['urlWeight="1" beside weight 0', 'rec-leg126', 'fallback', draw(0)],
    ['urlWeight="-1" is 0', 'rec-leg132', 'loc', draw(0)],
    ['a URL value of the prefix has weight 1', '/21.T7NSK/x', 'url', draw(0.4)],
    ['a prefix location of weight 1 shares with it', '/21.T7NSK/x', 'nsw', draw(0.6)],
    ['it beats an own location of weight 0', '/21.T7NSK/y', 'nsw', draw(0)],
  ],
  choose_by: [
    ['what follows weighted is not reached', 'rec-cb158?country=us', 'plain'],
    ['empty selectors are skipped', 'rec-cb175?country=us', 'us'],
    ['a selector twice', 'rec-cb181?country=us', 'us'],
    ['address', 'rec-cb164', 'addr'],
    ['absent: the address comes first', 'rec-cbdefault', 'addr'],
    ['a single location is taken, whatever its role', 'rec-m-cn1', 'cn', accept('text/html')],
    ['locatt without a value', 'rec-la?locatt=role', 'c'],
    ['locatt=id:b', 'rec-la?locatt=id:b', 'b'],
    ['locatt: names are exact', 'rec-la?locatt=ID:c', 'c'],
    ['locatt: a value may hold colons', 'rec-la?locatt=role:r:s', 'c'],
    ['locatt: a value is not trimmed', 'rec-la?locatt=id:%20a', 'main'],
    ['locatt: a value is exact', 'rec-la?locatt=view:X', 'c'],
    ['no country, no lookup', 'rec-cb-country', 'plain'],
    ['a country that nobody has', 'rec-m-country?country=xx', 'us'],
    ['addresses "127.0.0.1"', 'rec-ad202', 'addr'],
    ['addresses "::1"', 'rec-ad208', 'other'],
    ['addresses that are none match nothing, other than on HDLProxy', 'rec-ad214', 'other'],
    ['score 5 and 3', 'rec-sc220', 's0'],
    ['equal scores go by weight', 'rec-sc222', 's1', draw(0)],
    ['negative scores alone', 'rec-sc223', '200'],
    ['an unreadable score is 0', 'rec-sc228', 's1', draw(0)],
    ['a negative score loses to none', 'rec-scorelow', 'heavy'],
  ],
  weights: [
    ['absent is 1', 'rec-w236', 'w0', draw(0.49)],
    ['absent is 1, the other', 'rec-w236', 'w1', draw(0.51)],
    ['negative ones are 0', 'rec-w241', 'w0', draw(0.24)],
    ['all 0: the first has half', 'rec-w242', 'w1', draw(0.26)],
    ['unreadable is 1', 'rec-w243', 'w0', draw(0.99)],
    ['decimals', 'rec-w247', 'w1', draw(0.11)],
    ['1e3', 'rec-w248', 'w0', draw(0.99)],
    ['NaN is drawn', 'rec-w251', 'w0', draw(0.2)],
    ['NaN is drawn, the other', 'rec-w251', 'w1', draw(0.3)],
    ['3 and 1', 'rec-w257', 'w0', draw(0.74)],
    ['3 and 1, the other', 'rec-w257', 'w1', draw(0.76)],
    ['1d', 'rec-w258', 'w0', draw(0.99)],
    ['three of 0: the first', 'rec-three0', 'a', draw(0.16)],
    ['three of 0: the second', 'rec-three0', 'b', draw(0.49)],
    ['three of 0: the last', 'rec-three0', 'c', draw(0.51)],
    ['five of 0: the last', 'rec-five0', 'e', draw(0.71)],
  ],
  negotiation: [
    ['*/*', 'rec-cn', 'noconneg', accept('*/*')],
    ['a comma alone', 'rec-cn', 'noconneg', accept(',')],
    ['Accept absent', 'rec-cn', 'noconneg'],
    ['the name of a browser, absent Accept', 'rec-cn', 'browser', { headers: { 'User-Agent': 'mozilla/5' } }],
    [
      'a name that only holds that of a browser',
      'rec-cn',
      'noconneg',
      { headers: { 'User-Agent': 'x mozilla/5' } },
    ],
    ['a browser type of equal quality wins', 'rec-cn', 'browser', accept('text/html, application/json')],
    ['image/png lists no text/html', 'rec-m-html', 'b', accept('image/png')],
    ['text/html by media-type', 'rec-m-html', 'a', accept('text/html')],
    ['by quality', 'rec-cn', 'xml', accept('application/json;q=0.5, application/xml;q=0.9')],
    [
      'two lines are one',
      'rec-cn',
      'xml',
      { headers: { Accept: ['application/json;q=0.1', 'application/xml;q=0.5'] } },
    ],
    ['a type that nothing has is skipped', 'rec-cn', 'json', accept('text/turtle, application/json')],
    ['parameters are left out', 'rec-cn', 'json', accept('application/json;profile="x"')],
    ['an unreadable quality is 1', 'rec-cn', 'json', accept('application/json;q=x, application/xml;q=0.9')],
    ['audio and video are browser types', 'rec-cn', 'browser', accept('audio/ogg, application/json')],
    ['locatt comes before', 'rec-cn?locatt=ctype:text/html', 'html', JSON_TYPE],
    ['attributes are compared exactly', 'rec-cn9', 'landing', JSON_TYPE],
    ['ctype without http_role', 'rec-cn4', 'a', JSON_TYPE],
    ['a choose_by without locatt does not negotiate', 'rec-cn6', 'b', JSON_TYPE],
    ['what Accept leaves is drawn by weight', 'rec-m-lim2', 'b', { ...JSON_TYPE, random: 0 }],
    ['the choose_by of a list orders it', 'rec-m-lim?country=de', 'b', { ...JSON_TYPE, random: 0.2 }],
    ['action=metadata', 'rec-role?action=metadata', 'meta'],
    ['?metadata alone means nothing', 'rec-role?metadata', 'landing'],
    ['* is a language', 'rec-lang', 'main', speak('*')],
    ['languages by quality', 'rec-lang', 'at', speak('en;q=0.1, de-AT')],
    ['language behind type', 'rec-lang2', 'jde', speak('de', { Accept: 'application/json' })],
    [
      'a type that has other languages only',
      'rec-lang2',
      'jen',
      speak('fr, en', { Accept: 'application/json' }),
    ],
    ['an absent handle', 'rec-nosuch', '404', JSON_TYPE],
  ],
  'templates and the response': [
    ['href wins', 'rec-tboth', 'h'],
    ['{hdl:path}', 'rec-tp?locatt=id:2', 'https://t.example.org/21.T11998/rec-tp'],
    ['the handle as it was asked', '/21.t11998/REC-TP', 'https://t.example.org/21.t11998%2FREC-TP'],
    [
      '{hdl} encodes all that is not ASCII',
      '/21.T11998/rec-t%C3%A4%E6%BC%A2%20%3F%23%25%26%2B%3D%3B%2C%22%3C%3E',
      'https://t.example.org/21.T11998%2Frec-t%C3%A4%E6%BC%A2%20%3F%23%25%26%2B%3D%3B%2C%22%3C%3E',
    ],
    [
      '{hdl:path} keeps the marks',
      '/21.T11998/rec-t~!*%27()_.-:@$?locatt=id:2',
      'https://t.example.org/21.T11998/rec-t~!*%27()_.-:@$',
    ],
    [
      'urlappend: CR LF are encoded',
      'rec-loc?urlappend=%0D%0AX:%201',
      'https://loc1.example.org/%0D%0AX:%201',
    ],
    ['http_sc="303"', 'rec-sc-303', '303 sc'],
    ['http_sc of the list', 'rec-sc-list', '307 a'],
    ['http_sc empty', 'rec-sc-empty', 'sc'],
    ['http_sc of an included list does not count', 'rec-inc-only', 'inc1'],
    ['redirectionHeaders with any value', 'rec-loc?redirectionHeaders=false', '200 loc1'],
    ['redirect= means nothing', 'rec-cn11?redirect=https://x.example.org/', 'url'],
    ['?api alone means nothing', 'rec-loc?api', 'loc1'],
    ['action=api', 'rec-loc?action=api', '200'],
  ],
  'includes and prefixes': [
    ['a broken included list is left out', 'rec-inc-brk', 'own'],
    ['locations of included lists are chosen', 'rec-inc-both?locatt=id:i2', 'inc2'],
    ['a prefix takes part for browsers', '/21.T7NSA/loc', 'own', accept('text/html')],
    ['a setting of the record refuses it', '/21.T7NSA/nons?locatt=id:cn', 'own'],
    ['inactive, found', '/21.T7NSC/x', '404'],
    ['inactive, not found', '/21.T7NSC/none', '404'],
    ['inactive, JSON', '/21.T7NSC/x?action=api', '200'],
    ['an empty HS_NAMESPACE is none, other than on HDLProxy', '/21.T7NSF/x', 'url'],
    ['an empty HS_NAMESPACE, no URL', '/21.T7NSF/e', '200'],
    [
      '?cert reads the lists anew',
      '/21.T7NSA/url?cert',
      'https://data.example.org/21.T7NSA%2Furl',
      JSON_TYPE,
    ],
  ],
};

describe('location selection rules', () => {
  test.each(Object.entries(LEADS))('match HDLProxy: %s', async (_section, rows) => {
    const ask = await startRecordedLocations();
    const led: Record<string, string> = {};
    for (const [rule, path, , request] of rows) led[rule] = ledBy(await ask(path, request));
    expect(led).toEqual(Object.fromEntries(rows.map(([rule, , expected]) => [rule, expected])));
  });
});
