// `site-record`: prints the site record for clients of the native protocol.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type SiteJson, decodeSite } from '../../src/handle/value-data.js';
import { ROOT } from '../support/built-proxy.js';
import { createCertificate } from '../support/certificate.js';
import { cli } from '../support/cli.js';

const ENV = {
  UPSTREAM_URL: 'https://handle.example.org:8000',
  NATIVE_SITE_ADDRESS: '192.0.2.7',
  NATIVE_TCP_PORT: '2641',
  NATIVE_UDP_PORT: '2641',
};

interface SiteValue {
  index: number;
  type: string;
  data: { format: string; value: SiteJson };
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'site-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true });
  });
  return path;
}

async function valueOf(args: string[], env: Record<string, string>): Promise<SiteValue> {
  const { code, stdout } = await cli(['site-record', ...args], env);
  expect(code).toBe(0);
  return JSON.parse(stdout) as SiteValue;
}

describe('site-record command', () => {
  test('prints an HS_SITE value with the enabled interfaces, for queries only', async () => {
    const { index, type, data } = await valueOf(['--index', '3'], ENV);
    expect([index, type, data.format]).toEqual([3, 'HS_SITE', 'site']);
    expect(data.value).toMatchObject({ primarySite: false, servers: [{ address: '192.0.2.7' }] });
    expect(data.value.servers[0]!.interfaces).toEqual(
      [
        ['UDP', 2641],
        ['TCP', 2641],
        ['HTTP', 8080],
      ].map(([protocol, port]) => ({ query: true, admin: false, protocol, port })),
    );
  });

  test('includes the key of the HTTPS certificate', async () => {
    const file = join(folder(), 'cert.pem');
    writeFileSync(file, (await createCertificate({ keyType: 'rsa' })).cert);
    const { data } = await valueOf([], { ...ENV, NATIVE_SITE_CERTIFICATE_FILE: file });
    expect(data.value.servers[0]).toMatchObject({ publicKey: { format: 'key', value: { kty: 'RSA' } } });
  });

  test('rejects a certificate without an RSA key, the only kind that clients accept', async () => {
    const file = join(folder(), 'cert.pem');
    writeFileSync(file, (await createCertificate()).cert);
    const { code, stderr } = await cli(['site-record'], { ...ENV, NATIVE_SITE_CERTIFICATE_FILE: file });
    expect([code, stderr]).toEqual([2, expect.stringContaining('has no RSA key')]);
  });

  test('prints a primary site with --caching, because clients send AUTH requests only to a primary', async () => {
    const { code, stdout } = await cli(['site-record', '--caching'], ENV);
    const { data } = await valueOf([], ENV);
    expect([code, JSON.parse(stdout)]).toEqual([0, { ...data.value, primarySite: true }]);
  });

  test('prints the bytes of a resolver_site file with --binary', async () => {
    const args = ['dist/main.js', 'site-record', '--binary'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: ROOT, env: ENV });
    const { data } = await valueOf([], ENV);
    const servers = [{ address: '192.0.2.7' }];
    expect(decodeSite(stdout)).toMatchObject({ ...data.value, primarySite: true, servers });
  });

  test('prints the remedy when no address or interface is configured', async () => {
    const { UPSTREAM_URL, NATIVE_SITE_ADDRESS } = ENV;
    const unknown = await cli(['site-record'], { UPSTREAM_URL });
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('native.site.address')]);
    const off = await cli(['site-record'], { UPSTREAM_URL, NATIVE_SITE_ADDRESS, PORT: '0' });
    expect([off.code, off.stderr]).toEqual([2, expect.stringContaining('native.udp.port')]);
  });
});
