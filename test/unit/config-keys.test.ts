import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';

describe('configuration keys', () => {
  it('have unique environment variables', () => {
    const keys = configKeys();
    const variables = keys.map((entry) => entry.variable);
    expect(new Set(variables).size).toBe(keys.length);
    expect(keys.find((entry) => entry.key === 'cache.found.maxTtl')?.variable).toBe('CACHE_FOUND_MAX_TTL');
    expect(variables).toEqual(
      expect.arrayContaining([
        'HOST',
        'PORT',
        'ADMIN_HOST',
        'ADMIN_PORT',
        'UPSTREAM_URL',
        'REDIS_URL',
        'LOG_LEVEL',
      ]),
    );
  });

  it('have descriptions that end with a full stop', () => {
    for (const { key, description } of configKeys())
      expect(`${key}: ${description}`).toMatch(/: [A-Z0-9].{15,}\.$/);
  });
});
