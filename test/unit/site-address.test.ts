import { describe, expect, test } from 'vitest';
import type { SiteJson } from '../../src/handle/value-data.js';
import { addressesOf, referralIn, referralTo } from '../../src/plugins/referrals/follow.js';

const PORTS = [80, 443, 8000, 2641];
const HTTPS = { query: true, admin: false, protocol: 'HTTPS', port: 8000 };
const HTTP = { ...HTTPS, protocol: 'HTTP', port: 80 };

function site(changes: Partial<SiteJson> = {}, server: Partial<SiteJson['servers'][number]> = {}): SiteJson {
  return {
    ...{ version: 1, protocolVersion: '2.11', serialNumber: 1, primarySite: true, multiPrimary: false },
    servers: [{ serverId: 1, address: '192.0.2.7', interfaces: [HTTP, HTTPS], ...server }],
    ...changes,
  };
}

const urls = (sites: SiteJson[], authoritative = false) =>
  addressesOf(sites, { handle: '21.T1/a', authoritative, ports: PORTS }).map(({ url }) => url);

describe('site record addresses', () => {
  test('prefer HTTPS to HTTP and exclude other protocols', () => {
    const tcp = { ...HTTP, protocol: 'TCP', port: 2641 };
    expect(urls([site({}, { interfaces: [tcp, HTTP, HTTPS] })])).toEqual([
      'https://192.0.2.7:8000',
      'http://192.0.2.7',
    ]);
  });

  test('exclude an interface that is for administration only', () => {
    expect(urls([site({}, { interfaces: [{ ...HTTP, query: false, admin: true }] })])).toEqual([]);
  });

  test.each([
    ['an IPv6 address', site({}, { address: '2001:db8::7', interfaces: [HTTP] }), ['http://[2001:db8::7]']],
    [
      'a domain',
      site({ attributes: [{ name: 'domain', value: 'hdl.example.org' }] }, { interfaces: [HTTPS] }),
      ['https://hdl.example.org:8000'],
    ],
    [
      'a server-specific domain',
      site(
        {
          attributes: [
            { name: 'domain', value: 'a.example' },
            { name: 'domain.1', value: 'b.example' },
          ],
        },
        { address: '0.0.0.0', interfaces: [HTTP] },
      ),
      ['http://b.example'],
    ],
    [
      'a path',
      site({ attributes: [{ name: 'path', value: '/hs/' }] }, { interfaces: [HTTP] }),
      ['http://192.0.2.7/hs'],
    ],
  ])('are built from %s', (_what, given, expected) => {
    expect(urls([given])).toEqual(expected);
  });

  test.each([
    ['no address', site({}, { address: '0.0.0.0' })],
    ['no server', site({ servers: [] })],
    ['credentials in the domain', site({ attributes: [{ name: 'domain', value: 'me@evil.example' }] })],
    ['a query in the path', site({ attributes: [{ name: 'path', value: 'x?y' }] })],
    ['an invalid port', site({}, { interfaces: [{ ...HTTP, port: 700_000 }] })],
  ])('are empty for a site with %s', (_what, given) => {
    expect(urls([given])).toEqual([]);
  });

  test('exclude mirror sites for an authoritative read', () => {
    const mirror = site({ primarySite: false }, { address: '192.0.2.8', interfaces: [HTTP] });
    const primary = site({}, { interfaces: [HTTP] });
    expect(urls([mirror, primary])).toEqual(['http://192.0.2.8', 'http://192.0.2.7']);
    expect(urls([mirror, primary], true)).toEqual(['http://192.0.2.7']);
    expect(urls([mirror], true)).toEqual(['http://192.0.2.8']);
  });

  test.each([2, 3])('are selected from %i servers by the hash of the handle', (count) => {
    const servers = Array.from({ length: count }, (_, at) => ({
      serverId: at + 1,
      address: `192.0.2.${at + 1}`,
      interfaces: [HTTP],
    }));
    const of = (handle: string, hashOption?: number) =>
      addressesOf([site({ servers, ...(hashOption !== undefined && { hashOption }) })], {
        ports: PORTS,
        handle,
        authoritative: false,
      }).map(({ url }) => url);
    const used = new Set(Array.from({ length: 60 }, (_, at) => of(`21.T1/${at}`)[0]));
    expect(used.size).toBe(count);
    expect(of('21.T1/a')).toEqual(of('21.t1/A'));
    expect(new Set(Array.from({ length: 20 }, (_, at) => of(`21.T1/${at}`, 0)[0])).size).toBe(1);
    expect(of('21.T1/same', 1)).toEqual(of('99.X/same', 1));
  });

  test('are limited to four, at allowed ports', () => {
    const interfaces = Array.from({ length: 2000 }, (_, at) => ({ ...HTTP, port: at }));
    expect(urls([site({}, { interfaces })])).toEqual(['http://192.0.2.7', 'http://192.0.2.7:443']);
    const many = Array.from({ length: 100 }, () => site());
    expect(urls(many)).toHaveLength(4);
  });

  test('are those of the first 64 sites of a record', () => {
    const values = Array.from({ length: 5000 }, (_, at) => ({
      index: at + 1,
      type: at < 4500 ? 'HS_SITE' : 'URL',
      data: { format: 'site', value: site() },
    }));
    expect(referralTo(values).sites).toHaveLength(64);
  });

  test('omit the outer slashes of a path, and exclude an address with a long path', () => {
    const path = (value: string) =>
      urls([site({ attributes: [{ name: 'path', value }] }, { interfaces: [HTTP] })]);
    expect(path(`${'/'.repeat(1000)}x${'/'.repeat(1000)}`)).toEqual(['http://192.0.2.7/x']);
    expect(path(`${'/'.repeat(60_000)}x`)).toEqual([]);
  });
});

test.each([
  ['an empty name', ''],
  ['a name longer than any handle', `21.T1/${'x'.repeat(2048)}`],
  ['a number', 7],
])('a referral to %s names no handle', (_what, referralHandle) => {
  const members = { responseCode: 303, referralHandle };
  expect(referralIn({ kind: 'refused', status: 300, members, namesHandle: true })).toEqual({ sites: [] });
});
