import { describe, expect, it } from 'vitest';
import { configKeys, loadConfig } from '../../src/app/config.js';
import { withValue } from '../../src/config/keys.js';
import { problemsFrom } from '../support/load-config.js';

describe('configuration validation', () => {
  it('names the line of a key that is given twice', () => {
    const yaml = 'server:\n  port: 1\n  host: a\nlog: {}\nserver: {}\n';
    expect(problemsFrom({ yaml })).toEqual([
      '  file /etc/proxy.yaml: invalid YAML: line 5, Map keys must be unique',
    ]);
    expect(problemsFrom({ yaml: 'server: { port: 1, port: 1 }' })).toHaveLength(1);
  });

  it('reports a hundred unknown keys of a file that is no configuration', () => {
    const yaml = Array.from({ length: 300 }, (_, at) => `20.500.1/${at}: https://example.org/`).join('\n');
    expect(problemsFrom({ yaml })).toHaveLength(100);
  });

  it('rejects a file that would take long to parse', () => {
    expect(problemsFrom({ yaml: '\n'.repeat(1024 * 1024 + 1) })).toEqual([
      '  file /etc/proxy.yaml: invalid YAML: it has more than 1048576 characters',
    ]);
  });

  it('reports every problem with its key, source, value and allowed values', () => {
    const problems = problemsFrom({ yaml: 'admin: { port: 70000 }', env: { LOG_LEVEL: 'loud' } });
    expect(problems).toEqual([
      '  admin.port (file /etc/proxy.yaml): 70000 is not allowed; give a whole number from 0 to 65535',
      '  log.level (variable LOG_LEVEL): "loud" is not allowed; give one of trace, debug, info, warn, error, fatal, silent',
    ]);
  });

  it.each([{ yaml: 'upstream: { timeout: 60 }' }, { env: { UPSTREAM_TIMEOUT: '60' } }])(
    'reports a number without a unit (%o)',
    (given) => {
      expect(problemsFrom(given)).toEqual([
        expect.stringContaining('the unit is missing, such as 60s; give a duration with its unit'),
      ]);
    },
  );

  it('rejects more records in memory than a Map holds while entries come and go', () => {
    expect(problemsFrom({ env: { CACHE_FOUND_MAX_ENTRIES: '8000000' } })).toEqual([]);
    expect(problemsFrom({ env: { CACHE_FOUND_MAX_ENTRIES: '8000001' } })).toEqual([
      '  cache.found.maxEntries (variable CACHE_FOUND_MAX_ENTRIES): "8000001" is not allowed; give a whole number from 1 to 8000000',
    ]);
  });

  it('rejects values that are not UTF-8, because a password would be another one', () => {
    const yaml = Buffer.from('# Universität\npage: { title: Universität }\n', 'latin1').toString();
    expect(problemsFrom({ yaml })).toEqual([
      '  file /etc/proxy.yaml: a value is not UTF-8, or has U+FFFD in its place: save the file in UTF-8',
    ]);
    expect(problemsFrom({ yaml: yaml.split('\n', 1).join() })).toEqual([]);
  });

  it('rejects durations and sizes out of range', () => {
    expect(problemsFrom({ env: { REDIS_COMMAND_TIMEOUT: '11s', CACHE_MAX_BYTES: '1B' } })).toHaveLength(2);
  });

  it('suggests the closest known key, or the keys of the section, for an unknown key', () => {
    const yaml = 'cache: { found: { maxTTL: 1h, maxAge: 1h } }\nminTtl: 2s\nfoo: {}\nserver: { Port: 1 }\n';
    expect(
      problemsFrom({ yaml }).map((text) => text.replace(' (file /etc/proxy.yaml): unknown key', '')),
    ).toEqual([
      '  server.Port; did you mean server.port?',
      '  cache.found.maxTTL; did you mean cache.found.maxTtl?',
      '  cache.found.maxAge; known: minTtl, maxTtl, maxEntries',
      '  minTtl; did you mean cache.found.minTtl?',
      expect.stringMatching(/^ {2}foo; known: server, http, upstream, /),
    ]);
  });

  it('says what an entry of a list must be, instead of its keys', () => {
    const [first] = problemsFrom({ env: { TRAFFIC_RULES: '[5]' } });
    expect(first).toBe('  traffic.rules.0 (variable TRAFFIC_RULES): give a mapping of keys');
    const [limit] = problemsFrom({ env: { TRAFFIC_RULES: '[{ name: a, limit: 5 }]' } });
    expect(limit).toBe(
      '  traffic.rules.0.limit (variable TRAFFIC_RULES): give a mapping such as { perMinute: 600 }',
    );
  });

  it('names the source of an unknown key in a list, and suggests a key of its entry', () => {
    const rules = '[{ name: a, Match: {}, match: { useragent: x }, limit: { perHour: 2, perMinute: 1 } }]';
    const file = '(file /etc/proxy.yaml)';
    const variable = '(variable TRAFFIC_RULES)';
    for (const [given, source] of [
      [{ yaml: `traffic: { rules: ${rules} }` }, file],
      [{ env: { TRAFFIC_RULES: rules } }, variable],
    ] as const) {
      const at = '  traffic.rules.0';
      expect(problemsFrom(given)).toEqual([
        `${at}.match.useragent ${source}: unknown key; did you mean userAgent?`,
        `${at}.limit.perHour ${source}: unknown key; known: perSecond, perMinute, burst, by`,
        `${at}.Match ${source}: unknown key; did you mean match?`,
      ]);
    }
    expect(problemsFrom({ yaml: 'upstreams: [{ prefixes: ["20.1"], uri: x }]' })).toContainEqual(
      expect.stringMatching(/^ {2}upstreams\.0\.uri \(file .*\): unknown key; known: prefixes, .*url/),
    );
  });

  it.each(['cache: 256MiB', 'cache: [1]'])(
    'reports a value in place of a section (%s), even with a variable for a nested key',
    (yaml) => {
      expect(problemsFrom({ yaml, env: { CACHE_MAX_BYTES: '1MiB' } })).toEqual([
        '  cache (file /etc/proxy.yaml): this is a section: give a mapping of keys',
      ]);
    },
  );

  it.each([
    ['rejects', 'ftp://handle.example.org'],
    ['rejects', 'handle.example.org'],
    ['rejects', 'http://handle.example.org/api'],
    ['rejects', 'http://handle.example.org/?a=1'],
    ['rejects', 'http://handle.example.org/#'],
    ['rejects', 'http://admin:pw@handle.example.org'],
    ['rejects', 'http://@handle.example.org'],
    ['accepts', 'http://handle.example.org:8000/'],
    ['accepts', 'https://[::1]:8000'],
  ])('%s the upstream %s', (verdict, url) => {
    expect(problemsFrom({ env: { UPSTREAM_URL: url } })).toHaveLength(verdict === 'accepts' ? 0 : 1);
  });

  it.each([
    ['rejects', { REDIS_URL: 'redis://redis:6379/cache' }],
    ['rejects', { REDIS_URL: 'redis://redis:6379?db=1' }],
    ['rejects', { REDIS_URL: 'redis://redis:6379?password=p@ss' }],
    ['rejects', { REDIS_URL: 'redis://proxy:%zz@redis:6379' }],
    ['accepts', { REDIS_URL: 'redis://proxy:a%3Fb@redis:6379/1' }],
    ['rejects', { V2_IDENTITIES: 'alice=USER01' }],
    ['rejects', { V2_IDENTITIES: 'alice=300:USER01' }],
    ['rejects', { V2_IDENTITIES: 'alice=300:21.T11998/' }],
    ['accepts', { V2_IDENTITIES: 'alice=300%3A21.T11998/USER01' }],
    ['accepts', { CACHE_FOUND_MIN_TTL: '5m', CACHE_FOUND_MAX_TTL: '5m' }],
  ])('%s %j', (verdict, env) => {
    expect(problemsFrom({ env })).toHaveLength(verdict === 'accepts' ? 0 : 1);
  });

  it('rejects staleAfter above timeout and minTtl above maxTtl', () => {
    expect(problemsFrom({ env: { UPSTREAM_TIMEOUT: '1s', CACHE_FOUND_MIN_TTL: '2h' } })).toEqual([
      '  upstream.timeout (variable UPSTREAM_TIMEOUT): "1s" is not allowed; give more than upstream.staleAfter, 1.8s, or lower that too',
      '  cache.found.minTtl (variable CACHE_FOUND_MIN_TTL): "2h" is not allowed; give at most cache.found.maxTtl',
    ]);
  });

  it.each(['AB:CD', 'xy'.repeat(32), `${'AB:'.repeat(31)}A`])('rejects the fingerprint %s', (fingerprint) => {
    expect(problemsFrom({ env: { UPSTREAM_FINGERPRINT: fingerprint } })).toHaveLength(1);
  });

  it('says what is allowed, not what the parser expected, for a value of any type', () => {
    const values = [5, true, 'x', { a: 1 }, [5], [{}], [{ a: 1 }], [['x']]];
    const everywhere = (value: unknown): unknown =>
      configKeys().reduce<unknown>((tree, { path }) => withValue(tree, path, value), {});
    const rules = ['x', { name: 5 }, { name: 'a', match: 'x' }, { name: 'a', match: { method: {} } }];
    const texts = [
      ...values.map(everywhere),
      { traffic: { rules } },
      { upstreams: values.map((value) => ({ prefixes: value, url: value, kind: value })) },
    ].map((tree) => JSON.stringify(tree));
    const problems = texts.flatMap((yaml) => problemsFrom({ yaml }));
    expect(problems.length).toBeGreaterThan(500);
    expect(problems.filter((problem) => /Invalid|expected/.test(problem))).toEqual([]);
  });

  it('reports the file and line of invalid YAML', () => {
    expect(problemsFrom({ yaml: 'server:\n  port: [1\n' })[0]).toMatch(
      /^ {2}file \/etc\/proxy.yaml: invalid YAML: line \d/,
    );
  });

  it.each(['- 1', 'text', '42'])('requires a mapping in the file, and rejects %j', (yaml) => {
    expect(problemsFrom({ yaml })).toEqual(['  file /etc/proxy.yaml: give a mapping of keys']);
  });

  it('reports an unreadable file', () => {
    const readFile = () => {
      throw new Error('ENOENT: no such file');
    };
    expect(() => loadConfig({ env: { CONFIG: '/nowhere.yaml' }, readFile })).toThrow(
      'file /nowhere.yaml: cannot be read: ENOENT: no such file',
    );
  });
});
