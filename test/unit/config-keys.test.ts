// The list of keys read off the schema.
import { expect, it } from 'vitest';
import { configKeys } from '../../src/config/keys.js';

it('gives each key a variable of its own, made of its path', () => {
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

it('explains each key in one sentence that ends with a full stop', () => {
  for (const { key, meaning } of configKeys()) expect(`${key}: ${meaning}`).toMatch(/: [A-Z0-9].{15,}\.$/);
});
