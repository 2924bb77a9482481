// Passwords do not reach anything that prints configuration.
import { describe, expect, it } from 'vitest';
import { maskedConfig } from '../../src/config/mask.js';
import { configFrom, problemsFrom } from '../support/load-config.js';

describe('a password in the configuration', () => {
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
  ])('is not in the problems (%#)', (given) => {
    const problems = problemsFrom(given).join('\n');
    expect(problems).not.toBe('');
    expect(problems).not.toContain('hunter2');
  });

  it('is masked in a configuration for printing, and nothing else is', () => {
    const config = configFrom({ env: { REDIS_URL: 'redis://proxy:hunter2@redis:6379/1?password=hunter2' } });
    const masked = maskedConfig(config);
    expect(masked.redis.url).toBe('redis://***@redis:6379/1?***');
    expect({ ...masked, redis: config.redis }).toEqual(config);
    expect(config.redis.url).toContain('hunter2');
  });

  it('is masked where it is the token of the admin listener', () => {
    const config = configFrom({ env: { ADMIN_TOKEN: 'hunter2-hunter2-hunter2' } });
    expect(JSON.stringify(maskedConfig(config))).not.toContain('hunter2');
    expect(config.admin.token).toBe('hunter2-hunter2-hunter2');
  });

  it('leaves an address without credentials readable', () => {
    expect(maskedConfig(configFrom({ env: { REDIS_URL: 'redis://redis:6379/1' } })).redis.url).toBe(
      'redis://redis:6379/1',
    );
  });
});
