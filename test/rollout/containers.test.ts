// Dockerfile, Compose and Kubernetes files: they are consistent with each other, the configuration and the image.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import request from 'supertest';
import { describe, expect, it, onTestFinished } from 'vitest';
import { size } from '../../src/config/fields.js';
import { configKeys } from '../../src/app/config.js';
import { Live } from '../../src/config/live.js';
import type { Config } from '../../src/config/schema.js';
import { createProxyTrust } from '../../src/http/client-address.js';
import {
  type Budget,
  type Compose,
  type ConfigMap,
  type Deployment,
  type Ingress,
  type NetworkPolicy,
  type RedisSet,
  type Service,
  exampleDocuments,
  exampleText,
  shutdownSeconds,
} from '../support/examples.js';
import { configFrom } from '../support/load-config.js';
import { startProxy } from '../support/proxy.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const variables = configKeys().map(({ variable }) => variable);
const defaults = configFrom({});
/** A token that the configuration accepts. */
const ADMIN_TOKEN = '0123456789abcdef0123456789abcdef';

/**
 * Returns the worst case in bytes: both caches, bodies, unsent responses (twice their size), and 128 MiB
 * for the process.
 */
const memoryNeeded = ({ cache, http }: Config): number =>
  cache.maxBytes +
  http.responseCache.maxBytes +
  http.maxBufferedBodyBytes +
  2 * http.maxUnsentResponseBytes +
  128 * 2 ** 20;

/** Returns the bytes of a container size: `512mb`, `1g`, `1Gi`. */
const bytes = (text: string): number =>
  size({ min: '0B', max: '1024GiB', byDefault: '0B' }).parse(
    text.toUpperCase().replace(/^(\d+[GM]).*$/, '$1iB'),
  );

describe('Dockerfile', () => {
  it('pins its base image with the command in its comment', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dockerfile-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    writeFileSync(join(folder, 'docker'), `#!/bin/sh\n[ "$4" = "$IMAGE" ] && echo ${digest}\n`, {
      mode: 0o755,
    });
    writeFileSync(join(folder, 'Dockerfile'), dockerfile);
    const [, command = '', image = ''] = /^# {3}(BASE=(.*?); .*)$/m.exec(dockerfile) ?? [];
    const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, IMAGE: image };
    const { status, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, env, encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    const pinned = dockerfile.replace(/^ARG BASE=.*$/m, `ARG BASE=${image}@${digest}`);
    expect(readFileSync(join(folder, 'Dockerfile'), 'utf8')).toBe(pinned);
    expect([...pinned.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)).toEqual([
      '$BASE',
      'build',
      '$BASE',
    ]);
  });

  it('runs no install scripts of libraries', () => {
    const installs = dockerfile.match(/npm (?:ci|install) .*/g) ?? [];
    expect(installs.length).toBe(2);
    for (const install of installs) expect(install).toContain('--ignore-scripts');
  });
});

describe('compose.yaml', () => {
  const [{ services, networks }] = exampleDocuments('compose.yaml') as [Compose];
  const { proxy, redis } = services;
  /** The environment that Compose sets after substitution. */
  const environment = Object.fromEntries(
    Object.entries(proxy.environment).map(([name, value]) => {
      const given: Record<string, string> = { UPSTREAM_URL: 'https://handle.test:8000', ADMIN_TOKEN };
      return [name, value.replace(/^\$\{(\w+):[?-].*\}$/, (_all, wanted: string) => given[wanted] ?? '')];
    }),
  );

  it('sets only existing variables, to valid values', () => {
    expect(variables).toEqual(expect.arrayContaining(Object.keys(environment)));
    const config = configFrom({ env: environment });
    expect(config.redis.url).toBe('redis://redis:6379');
    expect(config.admin.token).toBe(ADMIN_TOKEN);
  });

  it('publishes HTTP ports to this machine only, and native ports to all networks', () => {
    const { server, admin, native } = configFrom({ env: environment });
    expect(proxy.ports).toEqual([
      `127.0.0.1:${server.port}:${server.port}`,
      `${native.tcp.port}:${native.tcp.port}/tcp`,
      `${native.udp.port}:${native.udp.port}/udp`,
      `127.0.0.1:${admin.port}:${admin.port}`,
    ]);
  });

  it('allows sufficient time to stop, and memory for the worst case', () => {
    expect(parseInt(proxy.stop_grace_period)).toBeGreaterThan(shutdownSeconds(defaults));
    expect(bytes(proxy.mem_limit)).toBeGreaterThan(memoryNeeded(configFrom({ env: environment })));
  });

  it('runs Redis without eviction, and with more memory than its data may use', () => {
    const option = (name: string): string => redis.command[redis.command.indexOf(name) + 1] ?? '';
    expect(option('--maxmemory-policy')).toBe('noeviction');
    expect(bytes(redis.mem_limit)).toBeGreaterThan(1.4 * bytes(option('--maxmemory')));
  });

  it("trusts only the network gateway, through which the host's TLS server connects", () => {
    const [{ subnet, gateway }] = networks.default.ipam.config;
    expect(configFrom({ env: environment }).http.trustedProxies).toEqual([gateway]);
    const { http } = configFrom({ env: { HTTP_TRUSTED_PROXIES: subnet } });
    expect(createProxyTrust(new Live({ http }))(gateway)).toBe(true);
  });
});

describe('Kubernetes manifests', () => {
  const [deployment] = exampleDocuments('kubernetes/deployment.yaml') as [Deployment];
  const [configMap] = exampleDocuments('kubernetes/configmap.yaml') as [ConfigMap];
  const [budget] = exampleDocuments('kubernetes/pod-disruption-budget.yaml') as [Budget];
  const [policy] = exampleDocuments('kubernetes/network-policy.yaml') as [NetworkPolicy];
  const services = ['service', 'native-service'].flatMap(
    (name) => exampleDocuments(`kubernetes/${name}.yaml`) as Service[],
  );
  const [redisSet, redisService, redisPolicy] = exampleDocuments('kubernetes/redis.yaml') as [
    RedisSet,
    Service,
    NetworkPolicy,
  ];
  const pod = deployment.spec.template;
  const [container] = pod.spec.containers;
  const config = configFrom({ env: { ...configMap.data, ADMIN_TOKEN, REDIS_URL: 'redis://redis:6379' } });

  it('set only existing variables, to valid values', () => {
    expect(variables).toEqual(expect.arrayContaining(Object.keys(configMap.data)));
    expect(config.upstream.url).toBe(configMap.data['UPSTREAM_URL']);
  });

  it('read variables from the ConfigMap, and secrets from a documented Secret', () => {
    const { name } = configMap.metadata;
    expect(container.envFrom).toEqual([{ configMapRef: { name } }, { secretRef: { name } }]);
    const told = [...exampleText('kubernetes/deployment.yaml').matchAll(/--from-literal=(\w+)=/g)];
    expect(told.map(([, variable]) => variable)).toEqual(['ADMIN_TOKEN']);
  });

  it('select the pods of the Deployment', () => {
    const { labels } = pod.metadata;
    for (const { matchLabels } of [deployment.spec.selector, budget.spec.selector, policy.spec.podSelector]) {
      expect(matchLabels).toEqual(labels);
    }
    for (const { spec } of services) expect(spec.selector).toEqual(labels);
    expect(budget.spec.minAvailable).toBeLessThan(deployment.spec.replicas);
  });

  it('name the listening ports', () => {
    const { server, admin, native } = config;
    const ports = {
      http: server.port,
      'native-tcp': native.tcp.port,
      'native-udp': native.udp.port,
      admin: admin.port,
    };
    expect(Object.fromEntries(container.ports.map((port) => [port.name, port.containerPort]))).toEqual(ports);
    const targets = services.flatMap(({ spec }) => spec.ports.map(({ targetPort }) => targetPort));
    expect(targets).toEqual(['http', 'admin', 'native-tcp', 'native-udp']);
    expect(config.admin.host).toBe('0.0.0.0');
  });

  it.each(['startupProbe', 'livenessProbe', 'readinessProbe'] as const)(
    'use an admin path that requires no token as %s',
    async (probe) => {
      const { path, port } = container[probe].httpGet;
      expect(port).toBe('admin');
      const { app } = await startProxy({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN });
      await request(app.admin).get(path).set('Host', '10.0.0.7:9090').expect(200);
    },
  );

  it('restrict the HTTP port to ingress and the admin port to monitoring, but leave native ports open', () => {
    expect(policy.spec.policyTypes).toEqual(['Ingress']);
    const allowed = policy.spec.ingress.map(({ from, ports }) => [
      ports.map(({ port }) => port),
      from?.map(({ namespaceSelector }) => Object.values(namespaceSelector.matchLabels)),
    ]);
    expect(allowed).toEqual([
      [['http'], [['ingress-nginx']]],
      [['admin'], [['monitoring']]],
      [['native-tcp', 'native-udp'], undefined],
    ]);
  });

  it('share the Redis of redis.yaml, which runs as in compose.yaml and which only they reach', () => {
    const [redis] = redisSet.spec.template.spec.containers;
    const [{ services: composed }] = exampleDocuments('compose.yaml') as [Compose];
    expect([redis.image, ['redis-server', ...redis.args]]).toEqual([
      composed.redis.image,
      composed.redis.command,
    ]);
    expect(bytes(redis.resources.limits.memory)).toBe(bytes(composed.redis.mem_limit));
    expect(redisSet.spec.replicas).toBe(1);
    const { labels } = redisSet.spec.template.metadata;
    expect(container.env).toEqual([
      {
        name: 'REDIS_URL',
        value: `redis://${redisService.metadata.name}:${config.redis.url?.split(':').at(-1)}`,
      },
    ]);
    for (const selector of [redisService.spec.selector, redisPolicy.spec.podSelector.matchLabels])
      expect(selector).toEqual(labels);
    const [rule] = redisPolicy.spec.ingress;
    expect(rule?.from?.map(({ podSelector }) => podSelector.matchLabels)).toEqual([pod.metadata.labels]);
  });

  it('lead the Ingress to the public port', () => {
    const [{ spec }] = exampleDocuments('kubernetes/ingress.yaml') as [Ingress];
    const backends = spec.rules.flatMap(({ http }) => http.paths.map(({ backend }) => backend.service));
    expect(backends).toEqual([{ name: services[0]?.metadata.name, port: { name: 'http' } }]);
  });

  it('trust no real proxy by default, only a documentation network (RFC 5737)', () => {
    expect(config.http.trustedProxies).not.toEqual([]);
    for (const network of config.http.trustedProxies) expect(network).toMatch(/^192\.0\.2\.\d+\/\d+$/);
  });

  it('run as the image user', () => {
    const { runAsUser, runAsGroup } = pod.spec.securityContext;
    expect(dockerfile).toContain(`USER ${runAsUser}:${runAsGroup}\n`);
  });

  it('allow sufficient time to stop, and memory for the caches', () => {
    const [, waitSeconds = ''] = container.lifecycle.preStop.exec.command;
    const needed = Number(waitSeconds) + shutdownSeconds(config);
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(needed);
    const memory = bytes(container.resources.limits.memory);
    expect(memory).toBeGreaterThan(memoryNeeded(config));
  });

  it('run the current version of the project', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(container.image).toMatch(new RegExp(`:${version.replaceAll('.', '\\.')}$`));
    const bake = exampleText('docker-bake.hcl');
    const defaultOf = (name: string): string =>
      new RegExp(`variable "${name}" \\{\\n +default = "(.*)"`).exec(bake)?.[1] ?? '';
    const [, tag = ''] = /tags += \["(.*)"\]/.exec(bake) ?? [];
    expect(tag.replace(/\$\{(\w+)\}/g, (_all, name: string) => defaultOf(name))).toBe(container.image);
  });
});
