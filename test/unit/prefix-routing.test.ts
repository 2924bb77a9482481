import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { handleRef } from '../../src/handle/handle.js';
import type { RecordSource } from '../../src/upstream/contract.js';
import { DSPACE } from '../../src/plugins/repositories/repositories.js';
import { createIsServed, createPrefixRouting, createRefOf } from '../../src/upstream/routing.js';

const server = (name: string, ...prefixes: string[]) => ({ name, prefixes });
const ONE = server('one', '21.T1', '20.500.12345', '20.500.12345.*');
const DERIVED = server('derived', '20.500.12345.7.*');
const OTHERS = server('others', '*');

const find = createPrefixRouting([ONE, DERIVED, OTHERS]);
const names = (handle: string): string[] => find(handleRef(handle, false)).map(({ name }) => name);

describe('prefix routing', () => {
  test.each([
    ['a prefix', '21.T1/a', 'one'],
    ['a prefix in different case', '21.t1/a', 'one'],
    ['the prefix handle', '21.T1', 'one'],
    ['a prefix derived from an exact entry', '21.T1.X/a', 'others'],
    ['a prefix with the same first characters', '21.T11/a', 'others'],
    ['a derived prefix', '20.500.12345.8/a', 'one'],
    ['a twice-derived prefix', '20.500.12345.8.9/a', 'one'],
    ['the longest of two patterns', '20.500.12345.7.1/a', 'derived'],
    ['the base of the longest pattern', '20.500.12345.7/a', 'one'],
    ['any other prefix', '99.X/a', 'others'],
    ['a suffix with slashes', '21.T1/a/b/20.500.12345/c', 'one'],
  ])('routes %s (%s) to the server %s', (_what, handle, name) => {
    expect(names(handle)).toEqual([name]);
  });

  test('routes a prefix record to the server of its prefix, then to the default server', () => {
    expect(names('0.NA/21.T1')).toEqual(['one', 'others']);
    expect(names('0.na/21.t1')).toEqual(['one', 'others']);
    expect(names('0.NA/99.X')).toEqual(['others']);
  });

  test('routes all prefix records to the server for 0.NA', () => {
    const root = server('root', '0.NA');
    const withRoot = createPrefixRouting([ONE, OTHERS, root]);
    expect(withRoot(handleRef('0.NA/21.T1', false))).toEqual([root]);
  });

  test('routes a handle under an unlisted prefix to no server', () => {
    expect(createPrefixRouting([ONE])(handleRef('99.X/a', false))).toEqual([]);
    expect(createPrefixRouting([ONE])(handleRef('0.NA/99.X', false))).toEqual([]);
  });

  test('cuts a prefix of a thousand segments only where a pattern can match', () => {
    const handle = handleRef(`${'A.'.repeat(1000)}B/x`, false);
    const cut = vi.spyOn(String.prototype, 'slice');
    const found = find(handle);
    const { length } = cut.mock.calls;
    cut.mockRestore();
    expect(found).toEqual([OTHERS]);
    expect(length).toBeLessThan(20);
  });

  const segment = fc.constantFrom('a', 'B', '1', '20');
  const prefix = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'));

  test('selects the longest matching pattern', () => {
    const patterns = fc.uniqueArray(
      fc
        .tuple(prefix, fc.boolean())
        .map(([base, isDerived]) => `${base}${isDerived ? '.*' : ''}`.toUpperCase()),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(patterns, prefix, (list, asked) => {
        const findAmong = createPrefixRouting(list.map((pattern) => server(pattern, pattern)));
        const [found] = findAmong(handleRef(`${asked}/x`, false));
        const wanted = asked.toUpperCase();
        const matching = list.filter((pattern) =>
          pattern.endsWith('.*') ? wanted.startsWith(pattern.slice(0, -1)) : wanted === pattern,
        );
        const exact = matching.find((pattern) => pattern === wanted);
        const longest = matching.toSorted((one, other) => other.length - one.length)[0];
        expect(found?.name).toBe(exact ?? longest);
      }),
    );
  });
});

describe('routing with a repository', () => {
  const REPOSITORY = { ...server('repository', '123456', '20.500.*'), source: DSPACE };
  const servers = [REPOSITORY, OTHERS];
  const findServers = createPrefixRouting<{ name: string; prefixes: string[]; source?: RecordSource }>(
    servers,
  );
  const namesOf = (handle: string): string[] => findServers(handleRef(handle, false)).map(({ name }) => name);

  test('selects the repository for its handles, but never for a prefix record', () => {
    expect(namesOf('123456/1')).toEqual(['repository']);
    for (const handle of ['0.NA/123456', '123456', '0.NA/20.500.1'])
      expect(namesOf(handle)).toEqual(['others']);
  });

  test('retains the case of repository suffixes in cache keys', () => {
    const refOf = createRefOf(servers, false);
    expect(
      ['123456/aB', '20.500.x/aB', '21.t1/aB', '0.na/123456', 'abc'].map((text) => refOf(text).key),
    ).toEqual(['123456/aB', '20.500.X/aB', '21.T1/AB', '0.NA/123456', '0.NA/ABC']);
  });

  test('reports a prefix of kind none as unserved, even if a wildcard covers it', () => {
    const unserved = ['99.1'];
    const isServed = createIsServed([OTHERS], { roots: [], unserved });
    expect(['99.1/A', '99.2/A'].map(isServed)).toEqual([false, true]);
    expect(createIsServed([], { roots: [], unserved })('99.2/A')).toBe(false);
    expect(['99.1/A', '99.2/A'].map(createIsServed([], { roots: [ONE], unserved }))).toEqual([false, true]);
  });
});
