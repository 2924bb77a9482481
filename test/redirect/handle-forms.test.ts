import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const HERE = 'https://example.org/here';
const records = { abc: [value(1, 'URL', HERE)], 'a/b c?#ä': [value(1, 'URL', 'https://example.org/odd')] };

describe('redirect endpoint', () => {
  test('accepts a handle after a scheme, a URN namespace or a resolver URL', async () => {
    const leads = await startLeads(records);
    const forms = [
      '/21.T11998/abc',
      '/21.t11998/ABC',
      '/21.T11998%2Fabc',
      '//21.T11998/abc',
      '/%2021.T11998/abc%C2%A0',
      '/21.T11998/abc%E2%80%8B',
      '/21.T11998/abc%20%E2%80%8B%20',
      '/hdl:21.T11998/abc',
      '/HDL:21.T11998/abc',
      '/doi:21.T11998/abc',
      '/info:hdl/21.T11998/abc',
      '/info:doi/21.T11998/abc',
      '/urn:hdl:21.T11998/abc',
      '/urn:hdl:21.T11998:abc',
      '/urn:doi:21.T11998:abc',
      '/urn:eidr:21.T11998:abc',
      '/https://hdl.handle.net/21.T11998/abc',
      '/http://hdl.handle.net/21.T11998/abc',
      '/https:/hdl.handle.net/21.T11998/abc',
      '/https://doi.org/21.T11998/abc',
      '/https://dx.doi.org/21.T11998/abc',
      '/https%3A%2F%2Fhdl.handle.net%2F21.T11998%2Fabc',
    ];
    for (const form of forms) {
      const { status, headers } = await leads.ask(form);
      expect([status, headers.location], form).toEqual([302, HERE]);
    }
    expect(leads.upstream.asked).toBe(1);
  });

  test('treats colons in the suffix of a URN as part of the handle', async () => {
    const leads = await startLeads({ 'uc:a@x': [value(1, 'URL', HERE)] });
    for (const form of [
      '/urn:hdl:21.T11998/uc:a@x',
      '/urn:doi:21.T11998:uc:a@x',
      '/urn:hdl:21.T11998:uc:a@x',
    ]) {
      const { status, headers } = await leads.ask(form);
      expect([status, headers.location], form).toEqual([302, HERE]);
    }
  });

  test('redirects HEAD and POST like GET', async () => {
    const leads = await startLeads(records);
    for (const method of ['HEAD', 'POST']) expect(await leads.to('abc', { method })).toEqual([302, HERE]);
    const head = await leads.ask('/21.T11998/abc', { method: 'HEAD' });
    expect(head.text).toBe('');
  });

  test('preserves slashes, spaces, plus signs and parameters in the handle', async () => {
    const leads = await startLeads(records);
    expect(await leads.to('a%2Fb%20c%3F%23%C3%A4')).toEqual([302, 'https://example.org/odd']);
    for (const path of ['abc/', 'abc+', 'abc;x=1', 'abc%20x', 'hdl:abc']) {
      expect((await leads.get(path)).status, path).toBe(404);
    }
  });

  test('rejects an invalid path and an overlong handle', async () => {
    const leads = await startLeads(records);
    const statusOf = async (path: string): Promise<number> => (await leads.ask(path)).status;
    expect(await statusOf('/21.T11998/x%ZZ')).toBe(400);
    expect(await statusOf('/21.T11998/x%00')).toBe(400);
    expect(await statusOf('/hdl:')).toBe(400);
    expect(await statusOf(`/21.T11998/${'x'.repeat(2100)}`)).toBe(400);
    expect(leads.upstream.asked).toBe(0);
  });

  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const post = (body: string) => ({ method: 'POST', headers: FORM, body });

  test('redirects a posted form with hdl=, as HDLProxy does', async () => {
    const leads = await startLeads(records);
    const posted = await leads.ask('/', post('hdl=hdl%3A21.T11998%2Fabc'));
    expect([posted.status, posted.headers.location]).toEqual([302, HERE]);
    const shown = await leads.ask('/', post('hdl=21.T11998%2Fabc&noredirect'));
    expect([shown.status, shown.text.includes(HERE)]).toEqual([200, true]);
    for (const name of ['21.T11998%2Fx%00', `21.T11998%2F${'x'.repeat(2100)}`]) {
      expect((await leads.ask('/', post(`hdl=${name}`))).status).toBe(400);
    }
    expect((await leads.ask('/', post(`hdl=${'x'.repeat(20_000)}`))).status).toBe(413);
  });

  test('repeats no redirect of a posted form', async () => {
    const leads = await startLeads(records);
    for (let times = 0; times < 3; times++) {
      const posted = await leads.ask('/21.T11998/abc', post('urlappend=%2Fmore'));
      expect([posted.status, posted.headers.location]).toEqual([302, `${HERE}/more`]);
    }
    expect(await leads.to('abc')).toEqual([302, HERE]);
  });

  test('reads a form whose Content-Type has parameters, and ignores bodies of other types', async () => {
    const leads = await startLeads(records);
    const statusOf = async (type: string): Promise<number> => {
      const headers = { 'Content-Type': type };
      return (await leads.ask('/', { method: 'POST', headers, body: 'hdl=21.T11998%2Fabc' })).status;
    };
    expect(await statusOf('Application/X-WWW-Form-Urlencoded ; charset=UTF-8')).toBe(302);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded2']) {
      expect(await statusOf(type), type).toBe(200);
    }
  });

  test('reads compressed forms and forms with a byte order mark', async () => {
    const leads = await startLeads(records);
    const form = Buffer.from('hdl=21.T11998%2Fabc');
    const statusOf = async (body: Buffer, encoding: string): Promise<number> => {
      const headers = { ...FORM, 'Content-Encoding': encoding };
      return (await leads.ask('/', { method: 'POST', headers, body })).status;
    };
    expect(await statusOf(gzipSync(form), 'gzip')).toBe(302);
    expect(await statusOf(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), form]), 'identity')).toBe(302);
    expect(await statusOf(form, 'gzip')).toBe(400);
    expect(await statusOf(form, 'unknown')).toBe(400);
    expect(await statusOf(gzipSync(Buffer.alloc(5_000_000)), 'gzip')).toBe(413);
  });

  test('redirects the lookup form to the path of the handle on the proxy, with the other parameters', async () => {
    const leads = await startLeads(records);
    const found = await leads.ask('/?hdl=+hdl%3A21.T11998%2Fa%2Fb+c%3F%23%C3%A4&noredirect=on');
    expect(found.status).toBe(302);
    expect(found.headers.location).toBe('/21.T11998/a/b%20c%3F%23%C3%A4?noredirect=on');
    const front = await leads.ask('/?hdl=');
    expect([front.status, front.headers['content-type']]).toEqual([200, 'text/html;charset=utf-8']);
  });

  test('ignores the body of a GET', async () => {
    const leads = await startLeads(records);
    for (let times = 0; times < 3; times++) {
      const question = {
        method: 'GET',
        headers: { ...FORM, 'Content-Length': '16' },
        body: 'urlappend=%2Fbad',
      };
      expect(await leads.to('abc', question)).toEqual([302, HERE]);
      expect(await leads.to('abc')).toEqual([302, HERE]);
    }
  });

  test('rejects methods other than GET, HEAD and POST', async () => {
    const leads = await startLeads(records);
    for (const method of ['PUT', 'DELETE']) {
      const { status, headers } = await leads.ask('/21.T11998/abc', { method });
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD, POST, OPTIONS']);
    }
    expect(leads.upstream.asked).toBe(0);
  });

  test('does not affect the record interface when disabled by redirect.enabled', async () => {
    const leads = await startLeads(records, { REDIRECT_ENABLED: 'false' });
    expect((await leads.get('abc')).status).toBe(404);
    expect((await leads.ask('/api/handles/21.T11998/abc')).status).toBe(200);
  });
});
