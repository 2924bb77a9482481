// The cost of checking a configuration is linear in its prefixes.
import { describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/app/config.js';

const prefixesOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `21.T${at}`);

const SHAPES = {
  'one server with all prefixes': (prefixes: string[]) => ({
    upstreams: [{ url: 'http://127.0.0.1:1', prefixes }],
  }),
  'a server for each prefix': (prefixes: string[]) => ({
    upstreams: prefixes.map((prefix) => ({ url: 'http://127.0.0.1:1', prefixes: prefix })),
  }),
  'a stale period for each prefix': (prefixes: string[]) => ({
    upstream: { url: 'http://127.0.0.1:1' },
    cache: { staleIfError: Object.fromEntries(['default', ...prefixes].map((name) => [name, '1h'])) },
  }),
};

describe('configuration with many prefixes', () => {
  it.each(Object.entries(SHAPES))('is checked in linear time: %s', (_shape, contentOf) => {
    /** Returns how many elements of lists are searched. */
    const searchedFor = (count: number): number => {
      const content = JSON.stringify(contentOf(prefixesOf(count)));
      const searches = [vi.spyOn(Array.prototype, 'includes'), vi.spyOn(Array.prototype, 'some')];
      loadConfig({ env: { CONFIG: 'config.yaml' }, readFile: () => content });
      const lists = searches.flatMap(({ mock }) => mock.contexts as unknown[][]);
      searches.forEach((search) => search.mockRestore());
      return lists.reduce((sum, { length }) => sum + length, 0);
    };
    expect(searchedFor(400)).toBeLessThan(2.5 * searchedFor(200));
  });
});
