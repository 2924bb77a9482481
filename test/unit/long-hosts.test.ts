// No host from a record is converted to ASCII unless it is short enough to be a name: a long one takes quadratic time.
import * as url from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { isWebAddress } from '../../src/handle/url.js';
import { addressesOf, referralTo } from '../../src/plugins/referrals/follow.js';
import { appendToUrl, toRedirectUrl } from '../../src/redirect/target.js';

vi.mock('node:url', async (load) => {
  const real = await load<typeof url>();
  return { ...real, domainToASCII: vi.fn(real.domainToASCII) };
});

/** Labels of letters that differ, of which each is converted by comparing it with all others. */
const letters = (count: number): string =>
  Array.from(
    { length: count },
    (_, at) => String.fromCharCode(0x4e00 + at) + (at % 20 === 19 ? '.' : ''),
  ).join('');

const LONG = [
  ['letters', `https://${letters(4000)}/`],
  ['escaped letters', `https://${encodeURIComponent(letters(40))}/`],
  ['letters after a user', `https://a@b@${letters(4000)}/`],
  ['letters after a backslash', `https://a\\@${letters(4000)}/`],
  ['letters after spaces', `\t https://${letters(4000)}/`],
  ['digits', `https://${'1.'.repeat(200)}/`],
] as const;

const spyOnParsing = () => {
  const parse = vi.spyOn(URL, 'canParse');
  onTestFinished(() => {
    parse.mockRestore();
  });
  vi.mocked(url.domainToASCII).mockClear();
  return { convert: url.domainToASCII, parse };
};

describe('a host that is too long for a name', () => {
  test.each(LONG)('is no redirect target, and is not parsed: %s', (_name, text) => {
    const { convert, parse } = spyOnParsing();
    expect(toRedirectUrl(text, {})).toEqual({ ok: false, problem: 'malformed' });
    expect(appendToUrl(text, '/more')).toBe(`${text.trim()}/more`);
    expect(isWebAddress(text)).toBe(false);
    expect(convert).not.toHaveBeenCalled();
    expect(parse).not.toHaveBeenCalled();
  });

  test.each(['', '/', '//', '\\', '\t'])('is no address of a referred server, after %j', (before) => {
    const { parse } = spyOnParsing();
    const interfaces = [{ query: true, protocol: 'HTTPS', port: 443 }];
    const servers = [{ serverId: 1, address: '0.0.0.0', interfaces }];
    const attributes = [{ name: 'domain', value: `${before}${letters(400)}?` }];
    const data = { format: 'site', value: { servers, attributes, hashOption: 2, primarySite: true } };
    const { sites } = referralTo([{ index: 1, type: 'HS_SITE', data }]);
    expect(sites).toHaveLength(1);
    expect(addressesOf(sites, { handle: '1/2', authoritative: false, ports: [443] })).toEqual([]);
    expect(parse).not.toHaveBeenCalled();
  });
});

test('a host of as many letters as a name may have is a redirect target', () => {
  const text = `https://${letters(60)}example.org/`;
  expect(toRedirectUrl(text, {})).toMatchObject({ ok: true });
  expect(appendToUrl(text, '.evil.org')).toBe(`${text}.evil.org`);
});

test('a service or a referral names no handle that is too long to be one', () => {
  const long = `1/${'x'.repeat(5000)}`;
  const service = (value: string) => ({ index: 1, type: 'HS_SERV', data: { format: 'string', value } });
  expect(referralTo([service(long)])).toEqual({ sites: [], handle: undefined });
  expect(referralTo([service('1/2')])).toEqual({ sites: [], handle: '1/2' });
});
