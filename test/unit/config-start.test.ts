// A start requires an upstream, readable certificates and consistent keys.
import { createPrivateKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { loadStartConfig } from '../../src/app/config.js';
import { ConfigError } from '../../src/config/load.js';
import { createCertificate } from '../support/certificate.js';
import { problemsFrom } from '../support/load-config.js';

const UPSTREAM_URL = 'https://handle.example.org';
const own = await createCertificate();
const { cert: certificate } = own;
const expired = await createCertificate({ notAfterDate: new Date('2020-01-01') });

interface Given {
  env?: Record<string, string>;
  files?: Record<string, string>;
}

/** Returns the error lines without the heading. */
function startProblemsOf({ env = {}, files = {} }: Given): string[] {
  const readFile = (path: string): string => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT: no such file or directory');
    return text;
  };
  try {
    loadStartConfig({ env: { UPSTREAM_URL, ...env }, readFile });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n').slice(1);
    throw error;
  }
  return [];
}

describe('startup configuration problems', () => {
  it('include a missing upstream', () => {
    expect(startProblemsOf({ env: { UPSTREAM_URL: '' } })).toEqual([
      '  upstream.url (default): set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000',
    ]);
  });

  it.each([
    ['UPSTREAM_CA_FILE', 'upstream.caFile'],
    ['REDIS_CA_FILE', 'redis.caFile'],
  ])('include a missing or invalid certificate file in %s', (variable, key) => {
    const problem = (files: Record<string, string>) => startProblemsOf({ env: { [variable]: '/ca' }, files });
    const start = `  ${key} (variable ${variable}): `;
    expect(problem({})).toEqual([`${start}/ca cannot be read: ENOENT: no such file or directory`]);
    const empty = `${start}/ca has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`;
    expect(problem({ '/ca': '' })).toEqual([empty]);
    expect(problem({ '/ca': '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----' })).toEqual([
      empty,
    ]);
    const broken = certificate.replace(/\n.*\n/, '\nAAAA\n');
    expect(problem({ '/ca': `${certificate}\n${broken}` })).toEqual([
      `${start}certificate 2 of /ca is broken`,
    ]);
    expect(problem({ '/ca': `# our CA\n${certificate}${certificate}` })).toEqual([]);
  });

  it('name the variable of a list that contains the key', () => {
    const UPSTREAMS = JSON.stringify([{ prefixes: '*', url: UPSTREAM_URL, caFile: '/ca' }]);
    expect(startProblemsOf({ env: { UPSTREAM_URL: '', UPSTREAMS } })).toEqual([
      '  upstreams.0.caFile (variable UPSTREAMS): /ca cannot be read: ENOENT: no such file or directory',
    ]);
  });

  describe('of a client certificate', () => {
    const FILES = { UPSTREAM_CLIENT_CERTIFICATE_FILE: '/cert', UPSTREAM_CLIENT_KEY_FILE: '/key' };
    const encrypted = createPrivateKey(own.key)
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hunter2' })
      .toString();

    it.each([
      ['are none for a key that fits', own.cert, own.key, undefined],
      ['include a missing certificate', undefined, own.key, '/cert cannot be read: ENOENT'],
      ['include a missing key', own.cert, undefined, '/key cannot be read: ENOENT'],
      [
        'include a certificate in place of the key',
        own.cert,
        own.cert,
        '/key has no private key in PEM form',
      ],
      ['include a key in place of the certificate', own.key, own.key, '/cert has no certificate in PEM form'],
      ['include an encrypted key', own.cert, encrypted, '/key is encrypted: decrypt it (openssl pkey'],
      [
        'include the key of another certificate',
        own.cert,
        expired.key,
        'the key in /key does not belong to the certificate in /cert: give the key with which it was requested',
      ],
      [
        'include an expired certificate',
        expired.cert,
        expired.key,
        'the certificate in /cert expired on 2020-01-01T00:00:00.000Z: give a renewed one and its key',
      ],
    ])('%s', (_what, cert, key, problem) => {
      const files = {
        ...(cert !== undefined && { '/cert': cert }),
        ...(key !== undefined && { '/key': key }),
      };
      const found = startProblemsOf({ env: FILES, files });
      expect(found).toEqual(problem === undefined ? [] : [expect.stringContaining(problem)]);
      const upstreams = [
        {
          ...{ prefixes: ['*'], url: UPSTREAM_URL },
          ...{ clientCertificateFile: '/cert', clientKeyFile: '/key' },
        },
      ];
      const listed = startProblemsOf({
        env: { UPSTREAM_URL: '', UPSTREAMS: JSON.stringify(upstreams) },
        files,
      });
      expect(listed.filter((line) => line.includes('upstreams.0.client'))).toHaveLength(problem ? 1 : 0);
    });
  });

  it('are all reported together', () => {
    expect(
      startProblemsOf({ env: { UPSTREAM_URL: '', UPSTREAM_CA_FILE: '/a', REDIS_CA_FILE: '/b' } }),
    ).toHaveLength(3);
  });
});

describe('contradictory keys', () => {
  const FINGERPRINT = 'AB'.repeat(32);

  it('include a fingerprint with a plain HTTP address', () => {
    const pinned = { UPSTREAM_FINGERPRINT: FINGERPRINT };
    expect(problemsFrom({ env: { ...pinned, UPSTREAM_URL: 'http://handle.example.org:8000' } })).toEqual([
      expect.stringMatching(
        /upstream\.fingerprint \(variable UPSTREAM_FINGERPRINT\): .*no certificate at http:\/\/handle\.example\.org:8000/,
      ),
    ]);
    const withSecondary = { ...pinned, UPSTREAM_URL, UPSTREAM_SECONDARIES: 'https://m1,http://m2' };
    expect(problemsFrom({ env: withSecondary })).toEqual([expect.stringContaining('http://m2')]);
    expect(problemsFrom({ env: { ...pinned, UPSTREAM_URL, UPSTREAM_SECONDARIES: 'https://m1' } })).toEqual(
      [],
    );
  });

  it.each([
    [{ PORT: '9090' }, 1],
    [{ PORT: '9090', HOST: '::' }, 1],
    [{ PORT: '9090', HOST: 'localhost' }, 1],
    [{ PORT: '9090', HOST: '192.0.2.1' }, 0],
    [{ PORT: '0', ADMIN_PORT: '0' }, 0],
  ])('include identical ports if the listeners share an address (%o: %i problems)', (env, count) => {
    const problems = problemsFrom({ env });
    expect(problems).toHaveLength(count);
    if (count > 0) expect(problems[0]).toMatch(/^ {2}server\.port .*another port than that of admin\.port/);
  });

  it('include a client certificate with a plain HTTP address, and one without its key', () => {
    const certificateOnly = { UPSTREAM_CLIENT_CERTIFICATE_FILE: '/cert', UPSTREAM_URL };
    expect(problemsFrom({ env: certificateOnly })).toEqual([
      expect.stringMatching(
        /upstream\.clientKeyFile \(default\): .*needs both its file and the file of its key/,
      ),
    ]);
    expect(problemsFrom({ env: { UPSTREAM_CLIENT_KEY_FILE: '/key', UPSTREAM_URL } })).toEqual([
      expect.stringContaining('upstream.clientCertificateFile (default)'),
    ]);
    const both = { ...certificateOnly, UPSTREAM_CLIENT_KEY_FILE: '/key' };
    expect(problemsFrom({ env: both })).toEqual([]);
    expect(problemsFrom({ env: { ...both, UPSTREAM_URL: 'http://handle.example.org' } })).toEqual([
      expect.stringMatching(/upstream\.clientCertificateFile .*there is no certificate at http:/),
    ]);
  });

  it.each([
    'proxy.test:3128',
    'socks5://user:hunter2@proxy.test',
    'http://user:hunter2%@proxy.test',
    'http://p/hunter2',
  ])('include an outgoing proxy at %s, without its value', (HTTPS_PROXY) => {
    expect(problemsFrom({ env: { UPSTREAM_URL, HTTPS_PROXY } })).toEqual([
      '  variable HTTPS_PROXY: (hidden) is not allowed; give an http:// or https:// address without a path, such as http://proxy.example.org:3128',
    ]);
  });

  it('include no outgoing proxy with an address, or with none', () => {
    expect(problemsFrom({ env: { UPSTREAM_URL, HTTPS_PROXY: 'https://user:p%40ss@proxy.test' } })).toEqual(
      [],
    );
    expect(problemsFrom({ env: { UPSTREAM_URL, http_proxy: '', HTTP_PROXY: 'proxy' } })).toEqual([]);
  });

  it('include an empty variable that overrides a value in the file', () => {
    const yaml = 'upstream: { url: "https://handle.example.org" }\ncache: { maxBytes: 1MiB }';
    expect(
      problemsFrom({ yaml, env: { UPSTREAM_URL: ' ', CACHE_MAX_BYTES: '2MiB', LOG_LEVEL: '' } }),
    ).toEqual([
      '  upstream.url (variable UPSTREAM_URL): the variable is empty, but file /etc/proxy.yaml has a value; unset the variable, or give it a value',
    ]);
  });
});
