// Passwords are masked in the printed configuration and in error messages.
import { describe, expect, it } from 'vitest';
import { loadStartConfig } from '../../src/app/config.js';
import { problemsFrom } from '../support/load-config.js';

describe('password in the configuration', () => {
  it.each([
    { env: { REDIS_URL: 'hunter2' } },
    { env: { REDIS_URL: 'http://:hunter2@redis:6379' } },
    { env: { REDIS_URL: 'user:hunter2@redis:6379' } },
    { env: { REDIS_URL: 'redis//:hunter2@redis:6379' } },
    { env: { REDIS_URL: 'http://redis:6379?password=hunter2' } },
    { env: { UPSTREAM_URL: 'https://admin:hun@hunter2@handle.example.org' } },
    { yaml: 'redis: "redis://:hunter2@redis:6379"' },
    { yaml: 'redis: { url: { password: hunter2 } }' },
    { yaml: 'redis: { url: [hunter2] }' },
    { yaml: 'redis: { password: hunter2 }' },
    { yaml: 'redis:\n  url: "redis://:hunter2@redis:6379\n  other: 1\n' },
    { yaml: 'redis:\n  url: @hunter2\n' },
    { env: { ADMIN_TOKEN: 'hunter2' } },
    { env: { UPSTREAM_SECONDARIES: 'http://s1:8000,http://admin:hunter2@s2:8000' } },
    { env: { UPSTREAM_SECONDARIES: 'admin:hunter2@s2:8000' } },
    { env: { V2_PUBLIC_URL: 'https://admin:hunter2@pid.example.org' } },
    { yaml: 'upstreams: [{ prefixes: ["*"], url: "http://admin:hunter2@s1:8000" }]' },
    { env: { REDIS_URL: 'redis://redis:6379?password=p@hunter2' } },
    { env: { REDIS_URL: 'redis://proxy:hunter2?x@redis' } },
  ])('is absent from the error message (case %#)', (given) => {
    const problems = problemsFrom(given).join('\n');
    expect(problems).not.toBe('');
    expect(problems).not.toContain('hunter2');
  });

  it('is absent from the error message if it is a number', () => {
    const problems = problemsFrom({ yaml: 'admin: { token: 8675309 }\nmirror: { password: 8675309 }' });
    expect(problems).toHaveLength(2);
    expect(problems.join('\n')).not.toContain('8675309');
  });

  it.each([
    [{ REDIS_URL: 'redis://proxy:hunter2@redis:6379/1' }, '"redis://***@redis:6379/1"'],
    [{ REDIS_URL: 'redis://redis:6379/1' }, '"redis://redis:6379/1"'],
    [{ TRACING_ENDPOINT: 'https://proxy:hunter2@otel.example.org' }, '"https://***@otel.example.org"'],
    [{ REDIS_CLUSTER: 'redis://proxy:hunter2@n1:6379' }, '(hidden)'],
    [{ ADMIN_TOKEN: 'hunter2-hunter2-hunter2' }, '(hidden)'],
    [{ MIRROR_USER: '300:21.T1/ADMIN', MIRROR_PASSWORD: 'hunter2' }, '(hidden)'],
  ])('is masked in the printed configuration (%o)', (env, shown) => {
    const upstream = { UPSTREAM_URL: 'https://handle.example.org' };
    const { keys } = loadStartConfig({ env: { ...upstream, ...env }, readFile: () => '' });
    expect(keys.map((key) => key.shown)).toContain(shown);
    expect(JSON.stringify(keys)).not.toContain('hunter2');
  });
});
