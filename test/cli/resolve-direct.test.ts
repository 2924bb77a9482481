// `resolve --direct` with a Handle server that has a self-signed certificate.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readDirectly } from '../../src/cli/direct.js';
import { createCertificate } from '../support/certificate.js';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { startHostileServer } from '../support/hostile-server.js';
import { newFolder } from '../support/folder.js';

const { key, cert, fingerprint } = await createCertificate();
const { url } = await startDemoServer({ tls: { key, cert } });

const resolve = (...options: string[]) => cli(['resolve', '21.T11998/demo', '--direct', url, ...options]);

function fileOfCertificate(): string {
  const file = join(newFolder(), 'ca.pem');
  writeFileSync(file, cert);
  return file;
}

describe('resolve --direct', () => {
  test('rejects a self-signed certificate, and prints its fingerprint and the options to accept it', async () => {
    const { code, stdout, stderr } = await resolve();
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('its certificate is self-signed');
    expect(stderr).toContain('give --ca or --fingerprint, or --insecure');
    expect(stderr).toContain(fingerprint);
  });

  test.each<[option: string, options: () => string[]]>([
    ['--fingerprint', () => ['--fingerprint', fingerprint]],
    [
      '--fingerprint without colons, after a different fingerprint',
      () => ['--fingerprint', `${'00'.repeat(32)},${fingerprint.replaceAll(':', '')}`],
    ],
    ['--ca', () => ['--ca', fileOfCertificate()]],
  ])('accepts a self-signed certificate with %s', async (_option, options) => {
    const { code, stdout, stderr } = await resolve(...options());
    expect([code, stderr]).toEqual([0, '200 · no Cache-Status\n']);
    expect(stdout).toContain('"responseCode":1');
  });

  test('accepts any certificate with --insecure, and prints its fingerprint', async () => {
    const { code, stderr } = await resolve('--insecure');
    expect([code, stderr]).toEqual([
      0,
      `certificate not verified: SHA-256 ${fingerprint}\n200 · no Cache-Status\n`,
    ]);
  });

  test('rejects a certificate that does not match --fingerprint', async () => {
    const { code, stderr } = await resolve('--fingerprint', '00'.repeat(32));
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not the pinned one')]);
    expect(stderr).toContain(fingerprint);
  });

  test('reports an unreachable server and the reason', async () => {
    const direct = `https://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await cli(['resolve', '21.T11998/demo', '--direct', direct, '--insecure']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('the connection was refused')]);
  });

  test.each([
    [['--fingerprint', 'abc'], '64 hex digits'],
    [['--ca', '/nowhere/ca.pem'], 'cannot read /nowhere/ca.pem'],
    [['--insecure', '--ca', '/nowhere/ca.pem'], 'cannot be used with'],
  ])('exits with 2 for %j', async (options, reason) => {
    const { code, stderr } = await resolve(...options);
    expect([code, stderr]).toEqual([2, expect.stringContaining(reason)]);
  });

  test('is required by the TLS options', async () => {
    const { code, stderr } = await cli(['resolve', '21.T11998/demo', '--insecure']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('are for --direct')]);
  });
});

describe('a Handle server that does not respond to resolve --direct', () => {
  test('is left after a time limit, without a key of the configuration as the remedy', async () => {
    const requests: string[] = [];
    const server = await startHostileServer((_socket, request) => requests.push(request));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const failure = readDirectly(server, '21.T1/a', {}).catch((error: unknown) => error);
    while (requests.length === 0) await nextTurn();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await failure).toMatchObject({
      message: `cannot resolve at ${server}: no complete response within 30000 ms; check the load of the server`,
    });
  });
});
