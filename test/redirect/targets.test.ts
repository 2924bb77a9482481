import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const startWith = (addresses: Record<string, string>, env?: Record<string, string>) =>
  startLeads(
    Object.fromEntries(
      Object.entries(addresses).map(([name, address]) => [name, [value(1, 'URL', address)]]),
    ),
    env,
  );

describe('redirect target', () => {
  test('may be an http, https, ftp or mailto URL', async () => {
    const addresses = {
      http: 'http://example.org/a',
      https: 'HTTPS://example.org/a',
      ftp: 'ftp://example.org/a',
      mailto: 'mailto:x@example.org',
      spaced: '  https://example.org/a \n',
    };
    const leads = await startWith(addresses);
    for (const [name, address] of Object.entries(addresses)) {
      expect(await leads.to(name)).toEqual([302, address.trim()]);
    }
  });

  test('is replaced by the record page, with a warning, unless it is a valid http, https, ftp or mailto URL', async () => {
    const addresses = {
      script: 'javascript:alert(document.domain)',
      script2: ' JaVaScRiPt:alert(1)',
      script3: 'java\nscript:alert(1)',
      script4: '\u0001javascript:alert(1)',
      script5: 'javascript://example.org/%0Aalert(1)',
      data: 'data:text/html,<script>alert(1)</script>',
      file: 'file:///etc/passwd',
      blob: 'blob:https://example.org/x',
      vbscript: 'vbscript:x',
      relative: '/elsewhere',
      host: '//evil.org/',
      words: 'see the library',
      hostless: 'https:///path',
      none: 'http://',
      schemeless: 'example.org/a',
      port: 'https://example.org:99999/',
    };
    const leads = await startWith(addresses);
    for (const name of Object.keys(addresses)) {
      const { status, headers, text } = await leads.get(name);
      expect([status, headers.location], name).toEqual([200, undefined]);
      expect(text).toContain('role="alert"');
      expect(text).not.toMatch(/href="\s*(?!https?:|ftp:|mailto:|\/2|\/api|\/favicon|\/")/i);
    }
  });

  test('is validated for locations and urlappend', async () => {
    const xml = '<locations><location href="javascript:alert(1)"/></locations>';
    const leads = await startLeads({
      located: [value(1, '10320/loc', xml), value(2, 'URL', 'https://example.org/')],
    });
    expect(await leads.to('located')).toEqual([200, undefined]);
    expect(await leads.to('located?urlappend=//x')).toEqual([200, undefined]);
  });

  test('cannot inject a header through a value', async () => {
    const leads = await startWith({
      crlf: 'https://example.org/a\r\nSet-Cookie: x=1\r\n\r\n<script>',
      lf: 'https://example.org/a\nX-Evil: 1',
      null: 'https://example.org/\0a\u2028b\u0085',
      host: 'https://example.org\r\nSet-Cookie: x=1',
      mail: 'mailto:x@example.org\r\nBcc: all@example.org',
    });
    const crlf = await leads.get('crlf');
    expect(crlf.headers.location).toBe(
      'https://example.org/a%0D%0ASet-Cookie:%20x=1%0D%0A%0D%0A%3Cscript%3E',
    );
    expect(crlf.headers['set-cookie']).toBeUndefined();
    expect((await leads.get('lf')).headers).not.toHaveProperty('x-evil');
    expect(await leads.to('null')).toEqual([302, 'https://example.org/%00a%E2%80%A8b%C2%85']);
    expect(await leads.to('host')).toEqual([200, undefined]);
    expect(await leads.to('mail')).toEqual([302, 'mailto:x@example.org%0D%0ABcc:%20all@example.org']);
  });

  test('cannot inject a header through a query', async () => {
    const leads = await startLeads({
      abc: [value(1, 'URL', 'https://example.org/')],
      alias: [value(1, 'HS_ALIAS', '21.T11998/abc')],
    });
    expect(await leads.to('abc?urlappend=a%0D%0ASet-Cookie:x')).toEqual([
      302,
      'https://example.org/a%0D%0ASet-Cookie:x',
    ]);
    expect(await leads.to('alias?x=%0D%0Ay"<>')).toEqual([301, '/21.T11998/abc?x=%0D%0Ay%22%3C%3E']);
    const { headers } = await leads.ask('/?hdl=21.T11998/a%0D%0ASet-Cookie:x');
    expect(headers.location).toBe('/21.T11998/a%0D%0ASet-Cookie%3Ax');
  });

  test('is encoded with IDNA for the host and UTF-8 for the rest of the URL', async () => {
    const leads = await startWith({
      idn: 'https://bücher.example/ä/漢?q=ü#ß',
      port: 'http://user@BÜCHER.example:8080/x',
      dots: 'https://例え。テスト/',
      emoji: 'https://example.org/😀',
      half: 'https://example.org/\ud83d!',
      encoded: 'https://example.org/%C3%A4?a=%26',
      bad: 'https://ex\u2100mple.org/',
      ipv6: 'http://[2001:db8::1]:8080/a',
      quotes: 'https://example.org/a b"<c>\\`{|}^',
    });
    expect(await leads.to('idn')).toEqual([
      302,
      'https://xn--bcher-kva.example/%C3%A4/%E6%BC%A2?q=%C3%BC#%C3%9F',
    ]);
    expect(await leads.to('port')).toEqual([302, 'http://user@xn--bcher-kva.example:8080/x']);
    expect(await leads.to('dots')).toEqual([302, 'https://xn--r8jz45g.xn--zckzah/']);
    expect(await leads.to('emoji')).toEqual([302, 'https://example.org/%F0%9F%98%80']);
    expect(await leads.to('half')).toEqual([302, 'https://example.org/%EF%BF%BD!']);
    expect(await leads.to('encoded')).toEqual([302, 'https://example.org/%C3%A4?a=%26']);
    expect(await leads.to('bad')).toEqual([200, undefined]);
    expect(await leads.to('ipv6')).toEqual([302, 'http://[2001:db8::1]:8080/a']);
    expect(await leads.to('quotes')).toEqual([302, 'https://example.org/a%20b%22%3Cc%3E%5C%60%7B%7C%7D%5E']);
  });

  test('is replaced by the record page when too long', async () => {
    const leads = await startWith({
      long: `https://example.org/${'ä'.repeat(2000)}`,
      fits: `https://example.org/${'a'.repeat(7900)}`,
    });
    expect(await leads.to('long')).toEqual([200, undefined]);
    expect((await leads.to('fits'))[0]).toBe(302);
  });

  test('is restricted to redirect.allowedHosts', async () => {
    const env = { REDIRECT_ALLOWED_HOSTS: 'example.org,*.Example.net,[::1]' };
    const leads = await startWith(
      {
        yes: 'https://EXAMPLE.org:8443/a',
        dot: 'https://example.org./a',
        below: 'https://a.b.example.net/',
        ipv6: 'http://[::1]/',
        mail: 'mailto:x@evil.org',
        itself: 'https://example.net/',
        prefixed: 'https://evilexample.org/',
        suffixed: 'https://example.org.evil.org/',
        user: 'https://example.org@evil.org/',
        slash: 'https://evil.org\\@example.org/',
        'below-plain': 'https://a.example.org/',
        encoded: 'https://evil%2Eorg/',
      },
      env,
    );
    for (const name of ['yes', 'dot', 'below', 'ipv6', 'mail'])
      expect((await leads.to(name))[0], name).toBe(302);
    for (const name of ['itself', 'prefixed', 'suffixed', 'user', 'below-plain', 'encoded']) {
      expect(await leads.to(name), name).toEqual([200, undefined]);
    }
    expect((await leads.get('user')).text).toContain('its host is not one of the allowed hosts');
    // Browsers treat a backslash as a slash; encoding it leaves only one possible host.
    expect(await leads.to('slash')).toEqual([302, 'https://evil.org%5C@example.org/']);
  });

  test('is linked in the body, which contains no scripts', async () => {
    const leads = await startWith({ abc: `https://example.org/'onload='x'&y="<script>` });
    const { text, headers } = await leads.get('abc');
    expect(headers['content-type']).toBe('text/html;charset=utf-8');
    expect(text).toContain('<a href="https://example.org/&#39;onload=&#39;x&#39;&#38;y=%22%3Cscript%3E">');
  });
});
