// The number of client connections that a process accepts under its file descriptor limit.
import { describe, expect, test } from 'vitest';
import { fitToFileLimit, readFileLimit, wantedFiles } from '../../src/app/file-limit.js';
import { fixed } from '../support/fixed.js';
import { configFrom } from '../support/load-config.js';

const UPSTREAM_URL = 'https://handle.example.org';

function fit(limit: number | undefined, env: Record<string, string> = {}) {
  const lines: [fields: Record<string, unknown>, msg: string][] = [];
  const warn = (fields: Record<string, unknown>, msg: string): void => void lines.push([fields, msg]);
  const config = configFrom({ env: { UPSTREAM_URL, ...env } });
  const { server, native } = fitToFileLimit(config, limit, { warn } as never) as typeof config;
  return { http: server.maxConnections, tcp: native.tcp.maxConnections, lines };
}

describe('file descriptor limit', () => {
  describe('applied to listeners', () => {
    test('changes nothing when it is high enough or unknown', () => {
      const wanted = wantedFiles(configFrom({ env: { UPSTREAM_URL } }));
      expect(wanted).toBe(10_000 + 2 * 128 + 104);
      for (const limit of [undefined, wanted, 1_048_576])
        expect(fit(limit)).toEqual({ http: 10_000, tcp: 1000, lines: [] });
      expect(fit(wanted - 1)).toMatchObject({ http: 9999, lines: [[{ wanted }, expect.any(String)]] });
    });

    test('reduces only client connections and warns with the remedy when it is too low', () => {
      const { http, lines } = fit(1024);
      expect(http).toBe(1024 - 2 * 128 - 104);
      expect(lines).toEqual([
        [
          {
            ...{ fileLimit: 1024, wanted: 10_360, maxConnections: http },
            remedy: 'raise it (ulimit -n, LimitNOFILE= of systemd), or lower server.maxConnections',
          },
          'file limit too low, accepting fewer connections',
        ],
      ]);
    });

    test('gives clients half of the descriptors that the process itself does not need when it is far too low', () => {
      expect(fit(64).http).toBe(12);
      expect(fit(8).http).toBe(1);
    });

    test('is divided among the enabled listeners in proportion', () => {
      const { http, tcp } = fit(1460, { NATIVE_TCP_PORT: '2641' });
      expect([http, tcp]).toEqual([1000, 100]);
      expect(fit(1024, { NATIVE_TCP_PORT: '2641' }).tcp).toBeLessThan(100);
    });

    test('bounds unlimited connections without a warning', () => {
      expect(fit(20_000, { SERVER_MAX_CONNECTIONS: '0' })).toMatchObject({
        http: 20_000 - 2 * 128 - 104,
        lines: [],
      });
    });

    test('reserves connections to each Handle server, its secondaries and the reverse lookup service', () => {
      const env = {
        UPSTREAM_SECONDARIES: 'https://m1,https://m2',
        ...fixed({ upstream: { connections: 10 } }),
      };
      expect(wantedFiles(configFrom({ env: { UPSTREAM_URL, ...env } }))).toBe(10_000 + 4 * 10 + 104);
      const reverse = { ...env, REVERSE_LOOKUP_URL: 'https://reverse.example.org' };
      expect(wantedFiles(configFrom({ env: { UPSTREAM_URL, ...reverse } }))).toBe(10_000 + 6 * 10 + 104);
    });
  });

  test.runIf(process.platform === 'linux')('is known for this process', () => {
    expect(readFileLimit()).toBeGreaterThan(100);
  });

  test('reserves connections to the root and to referred servers', () => {
    const env = { ...fixed({ upstream: { connections: 10 } }), UPSTREAM_FOLLOW_REFERRALS: 'true' };
    const wanted = 10_000 + 3 * 10 + 256 * 16 + 104;
    expect(wantedFiles(configFrom({ env: { UPSTREAM_URL, ...env } }))).toBe(wanted);
    expect(fit(12_000, env)).toMatchObject({
      http: 12_000 - (wanted - 10_000),
      lines: [[{ wanted }, expect.any(String)]],
    });
  });
});
