// These HDLProxy rules for shown lists, record headers and expiry are not in the recordings.
import { describe, expect, test } from 'vitest';
import { startRecordedLocations } from '../support/location-world.js';

const repeated = (count: number, nameOf: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => nameOf(at)).join(' ');

describe('HDLProxy location list', () => {
  test.each([
    ['no_legacy excludes URL values', 'rec-leg114', 'loc loc'],
    ['urlWeight is the weight of the URL value', 'rec-leg126', 'loc loc fallback=1.0'],
    ['a negative urlWeight is shown', 'rec-leg132', 'loc loc fallback=-1.0'],
    ['urlSubtypeWeight is the weight of URL subtypes', 'rec-urlsub2', 'loc url=1.0 sub=3.0'],
    ['values are in stored order', 'rec-two', 'five one'],
    ['includes are followed 21 levels deep', 'rec-deep0', repeated(22, (at) => `deep${at}`)],
    ['a list that includes itself appears 22 times', 'rec-inc-self', repeated(22, () => 'self')],
    ['includes are in breadth-first order', 'rec-inc-both', 'own inc1 inc2 inc3'],
    ['URL values of an included handle are excluded', 'rec-inc-only', 'inc1'],
    ['10320/links has no locations', 'rec-links', 'url=1.0'],
    ['nshdl is ignored when the prefix names lists', '/21.T7NSA/nshdl', 'own data'],
    ['suppressNsHeaders does not affect locations', '/21.T7NSA/sup', 'own data'],
    ['prefix locations are last', '/21.T7NSK/y', 'own url=0.0 nsw'],
    ['all <locs> are shown, each followed by its includes', '/21.T7NSB/own3', 'own own2 nsb nsc inc3'],
    ['includes of a prefix list are shown', '/21.T7NSM/nshdl', 'own nsc inc3'],
  ])('follows the rule: %s', async (_rule, path, expected) => {
    const ask = await startRecordedLocations();
    const { text } = await ask(`${path}?action=showurls`);
    const shown = (text.match(/<location [^>]*>/g) ?? []).map((element) => {
      const host = /href="https:\/\/([\w-]+)\./.exec(element)?.[1] ?? '';
      return element.includes('mode="legacy"') ? `${host}=${/weight="([-\d.]+)"/.exec(element)?.[1]}` : host;
    });
    expect(shown.join(' ')).toBe(expected);
  });

  const nsLink = (handle: string): string => `<https://data.example.org/21.T7NSA%2F${handle}>; rel="nsrel"`;

  test.each([
    ['a prefix adds its headers', '/21.T7NSA/loc', nsLink('loc'), 'x-ns'],
    [
      'locations with rel do not replace the prefix headers',
      '/21.T7NSA/supif2',
      `<https://own.example.org/>; rel="own", ${nsLink('supif2')}`,
      'x-ns',
    ],
    ['suppressNsHeaders excludes prefix headers', '/21.T7NSA/sup'],
    ['no_nslocs excludes prefix headers', '/21.T7NSA/nons'],
    [
      'an included handle adds its headers; 10320/links come first',
      'rec-inc-both',
      '<https://inclink.example.org/>; rel="inclink", <https://inc1.example.org/>; rel="inc"',
      'x-inc',
    ],
    ['the record page has none', 'rec-hdr?noredirect'],
    ['a record with neither URL nor 10320/loc has none', 'rec-hdr3'],
  ])('adds record headers by the rule: %s', async (_rule, path, link?: string, name?: string) => {
    const { headers } = await (await startRecordedLocations())(path);
    const others = Object.keys(headers).filter((each) => /^x-(ns|inc|own|a|one)$/.test(each));
    expect([headers.link, others]).toEqual([link, name === undefined ? [] : [name]]);
  });

  test.each([
    ['an unselected URL value limits the TTL', 'rec-ttl1', 10],
    ['an included value limits the TTL', 'rec-inc-tt', 5],
    ['a TTL of 0 is valid', 'rec-ttl3', 0],
  ])('limits max-age by the rule: %s', async (_rule, path, seconds) => {
    const { headers } = await (await startRecordedLocations())(path);
    expect(headers['cache-control']).toMatch(new RegExp(`max-age=${seconds}(,|$)`));
  });
});
