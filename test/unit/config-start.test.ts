// A start requires an upstream, readable certificates and consistent keys.
import { describe, expect, it } from 'vitest';
import { loadStartConfig } from '../../src/app/config.js';
import { ConfigError } from '../../src/config/load.js';
import { createCertificate } from '../support/certificate.js';
import { problemsFrom } from '../support/load-config.js';

const UPSTREAM_URL = 'https://handle.example.org';
const { cert: certificate } = await createCertificate();

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
    if (count > 0) expect(problems[0]).toMatch(/^ {2}admin\.port .*another port than that of server\.port/);
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
