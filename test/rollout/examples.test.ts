// Rollout examples: the systemd unit, web servers in front, and rules for all files.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { wantedFiles } from '../../src/app/file-limit.js';
import { exampleDocuments, exampleNames, exampleText, shutdownSeconds } from '../support/examples.js';
import { configFrom } from '../support/load-config.js';
import { itWithProgram, runProgram } from '../support/programs.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const variables = configKeys().map(({ variable }) => variable);
const defaults = configFrom({});

describe('example file', () => {
  describe.each(exampleNames('.yaml'))('%s', (name) => {
    it('is well-formed YAML without duplicate keys', () => {
      expect(exampleDocuments(name)).not.toEqual([]);
    });
  });

  describe.each(['handle-resolver-proxy.service', 'handle-resolver-proxy@.service'])(
    'systemd unit %s',
    (name) => {
      const unit = exampleText(name);
      const setting = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

      /** Returns a copy with local paths. */
      function copy(): string {
        const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
        onTestFinished(() => {
          rmSync(folder, { recursive: true });
        });
        const path = join(folder, name.replace('@', '@8081'));
        const here = unit
          .replaceAll('/usr/bin/node', process.execPath)
          .replaceAll('/opt/handle-resolver-proxy', ROOT);
        writeFileSync(path, here);
        return path;
      }

      it("starts the program with the image's command", () => {
        expect(setting('ExecStart')).toBe('/usr/bin/node --enable-source-maps dist/main.js');
        expect(dockerfile).toContain('CMD ["node", "--enable-source-maps", "dist/main.js"]');
        expect(setting('WorkingDirectory')).toBe('/opt/handle-resolver-proxy');
      });

      it('restarts after every failure, and allows sufficient time to stop', () => {
        expect(setting('Restart')).toBe('on-failure');
        expect(setting('RestartPreventExitStatus')).toBe('');
        expect(parseInt(setting('TimeoutStopSec'))).toBeGreaterThan(shutdownSeconds(defaults));
      });

      it('creates a snapshot folder that only the program can read', () => {
        expect(setting('DynamicUser')).toBe('yes');
        expect(setting('StateDirectory')).toBe(`handle-resolver-proxy${name.includes('@') ? '/%i' : ''}`);
        expect(setting('StateDirectoryMode')).toBe('0700');
        const manual = exampleText('outages.md');
        expect(manual).toContain('file: /var/lib/handle-resolver-proxy/snapshot');
      });

      it('allows an open file per connection', () => {
        const env = { UPSTREAM_URL: 'https://handle.test:8000', NATIVE_TCP_PORT: '2641' };
        expect(Number(setting('LimitNOFILE'))).toBeGreaterThan(wantedFiles(configFrom({ env })));
      });

      it('permits UDP and TCP for the native listeners, and grants no capability', () => {
        expect(setting('CapabilityBoundingSet')).toBe('');
        expect(setting('RestrictAddressFamilies').split(' ')).toEqual(
          expect.arrayContaining(['AF_INET', 'AF_INET6']),
        );
        expect(unit).not.toMatch(/^(IPAddress(Allow|Deny)|SocketBind(Allow|Deny)|PrivateNetwork)=/m);
      });

      itWithProgram('systemd-analyze', 'passes systemd-analyze verify', () => {
        const { code, output } = runProgram('systemd-analyze', ['verify', copy()]);
        // The output may name other local units as well.
        expect(output).not.toContain('handle-resolver-proxy');
        expect(code).toBe(0);
      });

      itWithProgram('systemd-analyze', 'passes systemd-analyze security', () => {
        const args = ['security', '--offline=true', '--threshold=20', copy()];
        const { code, output } = runProgram('systemd-analyze', args);
        expect(output).toMatch(/Overall exposure level .* OK/);
        expect(code).toBe(0);
      });
    },
  );

  it('enables the native listeners in a comment of the systemd unit', () => {
    const unit = exampleText('handle-resolver-proxy.service');
    const comment = /^# The native Handle protocol.*\n((?:#   .*\n)+)/m.exec(unit)?.[1] ?? '';
    const { native } = configFrom({ yaml: comment.replaceAll('#   ', '') });
    expect([native.tcp.port, native.udp.port]).toEqual([2641, 2641]);
  });

  it('has a template unit that differs from the systemd unit only in name, ports and folder', () => {
    const linesOf = (name: string): string[] => {
      const text = exampleText(name);
      return text.slice(text.indexOf('[Unit]')).split('\n');
    };
    const lines = linesOf('handle-resolver-proxy.service');
    const own = linesOf('handle-resolver-proxy@.service').filter((line) => !lines.includes(line));
    expect(own).toEqual([
      'Description=Caching resolver proxy for persistent identifiers, instance %i',
      'Environment=PORT=%i',
      'Environment=ADMIN_PORT=1%i',
      // Each instance needs a separate folder because it has a dynamic user.
      'StateDirectory=handle-resolver-proxy/%i',
    ]);
  });

  describe('for a web server in front', () => {
    const WEB_SERVERS = ['nginx.conf', 'Caddyfile', 'apache.conf', 'haproxy.cfg'];

    it.each(WEB_SERVERS)('waits longer than a write may take (%s)', (name) => {
      const [, seconds = ''] =
        /(?:proxy_read_timeout|response_header_timeout|ProxyTimeout|timeout server) (\d+)s?\b/.exec(
          exampleText(name),
        ) ?? [];
      const { writeTimeoutMs, queueTimeoutMs } = defaults.upstream;
      expect(Number(seconds) * 1000).toBeGreaterThan(writeTimeoutMs + queueTimeoutMs);
    });

    it.each(WEB_SERVERS)("uses the proxy's port (%s)", (name) => {
      expect(exampleText(name)).toContain(`127.0.0.1:${defaults.server.port}`);
    });
  });

  describe('of any kind', () => {
    const files = ['.yaml', '.md', '.conf', '.cfg', '.service', 'Caddyfile'].flatMap(exampleNames);

    it.each(files)('names only existing configuration keys (%s)', (name) => {
      const keys = configKeys().map(({ key }) => key);
      const sections = [...new Set(keys.map((key) => key.split('.')[0]))].join('|');
      const named = exampleText(name).matchAll(
        new RegExp(`(?<![\\w./{-])(?:${sections})\\.[a-z]\\w*(?:\\.\\w+)*`, 'g'),
      );
      const unknown = [...named]
        .map(([key]) => key)
        .filter((key) => !keys.includes(key) && !keys.some((known) => known.startsWith(`${key}.`)))
        .filter((key) => !/\.(?:ya?ml|json|js|md|gz|service|org|example)$/.test(key));
      expect(unknown).toEqual([]);
    });

    it.each(files)('sets only existing variables (%s)', (name) => {
      const foreign = ['NODE_ENV', 'CONFIG'];
      const set = [...exampleText(name).matchAll(/(?<![\w-]|export )([A-Z]+(?:_[A-Z]+)+)=/g)].map(
        ([, variable]) => variable,
      );
      expect(set.filter((variable) => ![...variables, ...foreign].includes(variable ?? ''))).toEqual([]);
    });

    it('is linked in the README or the guide', () => {
      const pages = ['README.md', 'config/README.md']
        .map((path) => readFileSync(join(ROOT, path), 'utf8'))
        .join('');
      const tops = [...new Set(files.map((name) => name.split('/')[0] ?? ''))];
      expect(tops.filter((name) => !pages.includes(`examples/${name})`))).toEqual([]);
    });
  });
});
