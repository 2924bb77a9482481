// The files to roll out with agree with each other, with the configuration and with the image.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import request from 'supertest';
import { describe, expect, it, onTestFinished } from 'vitest';
import { configKeys } from '../../src/config/keys.js';
import type { Config } from '../../src/config/schema.js';
import { parseSize } from '../../src/config/fields.js';
import {
  type Budget,
  type Compose,
  type ConfigMap,
  type Deployment,
  type Service,
  exampleDocuments,
  exampleNames,
  examplePath,
  exampleText,
} from '../support/examples.js';
import { configFrom } from '../support/load-config.js';
import { itWithProgram, runProgram } from '../support/programs.js';
import { startProxy } from '../support/proxy.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const variables = configKeys().map(({ variable }) => variable);
const defaults = configFrom({});
/** A token long enough to be accepted. */
const ADMIN_TOKEN = '0123456789abcdef0123456789abcdef';

/** The part of a second in which the process can log its end. */
const shutdownSeconds = ({ server }: Config): number => server.shutdownTimeout / 1000 + 1;

/** Bytes both caches may fill; the process itself takes about 150 MiB beside them. */
const memoryNeeded = ({ cache, http }: Config): number =>
  cache.maxBytes + http.hotPath.maxBytes + 150 * 2 ** 20;

describe.each(exampleNames('.yaml'))('%s', (name) => {
  it('is well-formed, each key once', () => {
    expect(exampleDocuments(name)).not.toEqual([]);
  });
});

describe('compose.yaml', () => {
  const [{ services }] = exampleDocuments('compose.yaml') as [Compose];
  const { proxy } = services;
  /** As the command fills it in. */
  const environment = Object.fromEntries(
    Object.entries(proxy.environment).map(([name, value]) => {
      const given: Record<string, string> = { UPSTREAM_URL: 'https://handle.test:8000', ADMIN_TOKEN };
      return [name, value.replace(/^\$\{(\w+):[?-].*\}$/, (_all, wanted: string) => given[wanted] ?? '')];
    }),
  );

  it('sets variables that exist, to values that are allowed', () => {
    expect(variables).toEqual(expect.arrayContaining(Object.keys(environment)));
    const config = configFrom({ env: environment });
    expect(config.redis.url).toBe('redis://redis:6379');
    expect(services).toHaveProperty('redis');
    expect(config.admin.token).toBe(ADMIN_TOKEN);
  });

  it('publishes the ports the proxy listens on, to this machine only', () => {
    const { server, admin } = configFrom({ env: environment });
    expect(proxy.ports).toEqual([
      `127.0.0.1:${server.port}:${server.port}`,
      `127.0.0.1:${admin.port}:${admin.port}`,
    ]);
  });

  it('gives time to stop and memory for the caches', () => {
    expect(parseInt(proxy.stop_grace_period)).toBeGreaterThan(shutdownSeconds(defaults));
    expect(proxy.mem_limit).toBe('1g');
    expect(2 ** 30).toBeGreaterThan(memoryNeeded(defaults));
  });
});

describe('the Kubernetes manifests', () => {
  const [deployment] = exampleDocuments('kubernetes/deployment.yaml') as [Deployment];
  const [configMap] = exampleDocuments('kubernetes/configmap.yaml') as [ConfigMap];
  const [budget] = exampleDocuments('kubernetes/pod-disruption-budget.yaml') as [Budget];
  const services = exampleDocuments('kubernetes/service.yaml') as Service[];
  const pod = deployment.spec.template;
  const [container] = pod.spec.containers;
  const config = configFrom({ env: { ...configMap.data, ADMIN_TOKEN, REDIS_URL: 'redis://redis:6379' } });

  it('set variables that exist, to values that are allowed', () => {
    expect(variables).toEqual(expect.arrayContaining(Object.keys(configMap.data)));
    expect(config.upstream.url).toBe(configMap.data['UPSTREAM_URL']);
  });

  it('take the variables from the ConfigMap, and secrets from a Secret whose making is explained', () => {
    const { name } = configMap.metadata;
    expect(container.envFrom).toEqual([{ configMapRef: { name } }, { secretRef: { name } }]);
    const told = [...exampleText('kubernetes/deployment.yaml').matchAll(/--from-literal=(\w+)=/g)];
    expect(told.map(([, variable]) => variable)).toEqual(['ADMIN_TOKEN', 'REDIS_URL']);
  });

  it('choose the pods of the Deployment', () => {
    const { labels } = pod.metadata;
    for (const chosen of [deployment.spec.selector.matchLabels, budget.spec.selector.matchLabels]) {
      expect(chosen).toEqual(labels);
    }
    for (const { spec } of services) expect(spec.selector).toEqual(labels);
    expect(budget.spec.minAvailable).toBeLessThan(deployment.spec.replicas);
  });

  it('name the ports the proxy listens on', () => {
    const ports = { http: config.server.port, admin: config.admin.port };
    expect(Object.fromEntries(container.ports.map((port) => [port.name, port.containerPort]))).toEqual(ports);
    const targets = services.flatMap(({ spec }) => spec.ports.map(({ targetPort }) => targetPort));
    expect(targets).toEqual(['http', 'admin']);
    expect(config.admin.host).toBe('0.0.0.0');
  });

  it.each(['startupProbe', 'livenessProbe', 'readinessProbe'] as const)(
    'request as %s what the admin listener answers without a token',
    async (probe) => {
      const { path, port } = container[probe].httpGet;
      expect(port).toBe('admin');
      const { app } = await startProxy({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN });
      await request(app.admin).get(path).set('Host', '10.0.0.7:9090').expect(200);
    },
  );

  it('run as the user of the image', () => {
    const { runAsUser, runAsGroup } = pod.spec.securityContext;
    expect(dockerfile).toContain(`USER ${runAsUser}:${runAsGroup}\n`);
  });

  it('give time to stop and memory for the caches', () => {
    const [, waitSeconds = ''] = container.lifecycle.preStop.exec.command;
    const needed = Number(waitSeconds) + shutdownSeconds(config);
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(needed);
    const memory = parseSize(`${container.resources.limits.memory}B`) ?? 0;
    expect(memory).toBeGreaterThan(memoryNeeded(config));
  });

  it('run the version of this project', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(container.image).toMatch(new RegExp(`:${version.replaceAll('.', '\\.')}$`));
  });
});

describe('the systemd unit', () => {
  const unit = exampleText('handle-resolver-proxy.service');
  const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  /** A copy whose paths are those of this machine. */
  function copy(): string {
    const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const path = join(folder, 'handle-resolver-proxy.service');
    const here = unit
      .replaceAll('/usr/bin/node', process.execPath)
      .replaceAll('/opt/handle-resolver-proxy', ROOT);
    writeFileSync(path, here);
    return path;
  }

  it('starts the program as the image does', () => {
    expect(setting('ExecStart')).toBe('/usr/bin/node --enable-source-maps dist/main.js');
    expect(dockerfile).toContain('CMD ["node", "--enable-source-maps", "dist/main.js"]');
    expect(setting('WorkingDirectory')).toBe('/opt/handle-resolver-proxy');
  });

  it('starts it again after every failure, as a port may be in use for a moment only, and gives it time to stop', () => {
    expect(setting('Restart')).toBe('on-failure');
    expect(setting('RestartPreventExitStatus')).toBe('');
    expect(parseInt(setting('TimeoutStopSec'))).toBeGreaterThan(shutdownSeconds(defaults));
  });

  itWithProgram('systemd-analyze', 'is one that systemd takes without a word', () => {
    const { code, output } = runProgram('systemd-analyze', ['verify', copy()]);
    // It may report other units of the machine too.
    expect(output).not.toContain('handle-resolver-proxy');
    expect(code).toBe(0);
  });

  itWithProgram('systemd-analyze', 'leaves the program hardly any rights', () => {
    const args = ['security', '--offline=true', '--threshold=20', copy()];
    const { code, output } = runProgram('systemd-analyze', args);
    expect(output).toMatch(/Overall exposure level .* OK/);
    expect(code).toBe(0);
  });
});

describe('the web servers in front', () => {
  it.each(['nginx.conf', 'Caddyfile'])('%s waits longer than a write may take', (name) => {
    const [, seconds = ''] =
      /(?:proxy_read_timeout|response_header_timeout) (\d+)s/.exec(exampleText(name)) ?? [];
    const { writeTimeout, queueTimeout } = defaults.upstream;
    expect(Number(seconds) * 1000).toBeGreaterThan(writeTimeout + queueTimeout);
  });

  it.each(['nginx.conf', 'Caddyfile'])('%s uses the port the proxy listens on', (name) => {
    expect(exampleText(name)).toContain(`127.0.0.1:${defaults.server.port}`);
  });
});

describe('every file', () => {
  const files = ['.yaml', '.md', '.conf', '.service', 'Caddyfile'].flatMap(exampleNames);

  it.each(files)('%s names no configuration key that does not exist', (name) => {
    const keys = configKeys().map(({ key }) => key);
    const sections = [...new Set(keys.map((key) => key.split('.')[0]))].join('|');
    const named = exampleText(name).matchAll(
      new RegExp(`(?<![\\w./-])(?:${sections})\\.[a-z]\\w*(?:\\.\\w+)*`, 'g'),
    );
    const unknown = [...named]
      .map(([key]) => key)
      .filter((key) => !keys.includes(key) && !keys.some((known) => known.startsWith(`${key}.`)))
      .filter((key) => !/\.(?:ya?ml|json|js|service|org|example)$/.test(key));
    expect(unknown).toEqual([]);
  });

  it.each(files)('%s sets no variable that does not exist', (name) => {
    const foreign = ['NODE_ENV', 'CONFIG'];
    const set = [...exampleText(name).matchAll(/(?<![\w-]|export )([A-Z]+(?:_[A-Z]+)+)=/g)].map(
      ([, variable]) => variable,
    );
    expect(set.filter((variable) => ![...variables, ...foreign].includes(variable ?? ''))).toEqual([]);
  });

  it('is spoken of in the README', () => {
    const readme = readFileSync(examplePath('../../README.md'), 'utf8');
    const tops = [...new Set(files.map((name) => name.split('/')[0] ?? ''))];
    expect(tops.filter((name) => !readme.includes(`config/examples/${name}`))).toEqual([]);
  });
});
