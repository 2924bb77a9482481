// Starts the real app on a real socket, with a test's configuration.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { afterAll, afterEach, beforeAll, onTestFinished } from 'vitest';
import { type App, type AppDeps, createApp } from '../../src/app/app.js';
import { upstreamServers } from '../../src/config/upstream-servers.js';
import type { Config } from '../../src/config/schema.js';
import { openListeners } from '../../src/app/listen.js';
import type { PluginSettings } from '../../src/app/plugins.js';
import { createNative } from '../../src/plugins/native/native.js';
import type { NativeAnswer } from '../../src/plugins/native/answer.js';
import { createHttpServer } from '../../src/server/http-server.js';
import { createLogger } from '../../src/observe/logger.js';
import { type Metrics, createMetrics } from '../../src/observe/metrics.js';
import { type Asked, type Question, ask } from './ask.js';
import { createPools } from '../../src/upstream/connections.js';
import { configFrom } from './load-config.js';
import { createNodeHttpDispatcher } from './node-http-dispatcher.js';
import { UPSTREAM_URL } from './upstream.js';

export interface Proxy {
  url: string;
  app: App & {
    /** Answers native messages as the listeners do, without a transport. */
    native: NativeAnswer;
  };
  ask: (target: string, question?: Question) => Promise<Asked>;
  /** Native ports, if enabled. */
  tcpPort: number;
  udpPort: number;
  /** Closes the native listeners as shutdown does. */
  drainNative: (timeoutMs: number) => Promise<void>;
  /** Advances the proxy's clock. */
  pass: (ms: number) => void;
  /** Returns the metrics as JSON. */
  metrics: () => ReturnType<Metrics['registry']['getMetricsAsJSON']>;
  /** Returns one metric. @throws Error when it does not exist */
  metric: (name: string) => Promise<MetricObjectWithValues<MetricValue<string>>>;
  /** Returns the number of open client connections. */
  connections: () => Promise<number>;
  close: () => Promise<void>;
}

export const STARTED_AT = Date.parse('2026-11-21T10:00:00Z');

/** The log of a proxy whose test reads no log. A log to stdout would have a timer that nothing stops. */
const UNREAD = { write: () => undefined };

/** Whether nock mocks the upstream servers; servers on loopback are real. */
const isMocked = (config: Config): boolean =>
  !upstreamServers(config)
    .flatMap(({ url, secondaries }) => [url, ...secondaries])
    .some((url) => url.includes('://127.0.0.1:'));

/** Writes text to a temporary file and returns its path, for keys that name a PEM file. */
function fileOf(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'pem-')), 'ca.pem');
  writeFileSync(path, text);
  return path;
}

/** Configurations by their variables, because validation takes a quarter of a start. */
const configs = new Map<string, PluginSettings>();

function configOf(env: Record<string, string>): PluginSettings {
  const key = JSON.stringify(env);
  const config = configs.get(key) ?? configFrom({ env });
  configs.set(key, config);
  return config;
}

const portOf = (url: string | undefined): number => (url === undefined ? 0 : Number(url.split(':').at(-1)));

/**
 * Starts a proxy for all tests of a file, in which no test sets its environment, and purges its cache after
 * each test. Call it in a `describe` or at the top; the members exist from the first test on.
 */
export function useProxy(env: Record<string, string> = {}): Proxy {
  const used = {} as Proxy;
  beforeAll(async () => {
    Object.assign(used, await openProxy(env));
  });
  afterEach(() => used.app.operations.purge({ prefix: '', isSoft: false }));
  afterAll(() => used.close());
  return used;
}

/** Starts a proxy as `openProxy` does, and closes it when the test ends. */
export async function startProxy(...given: Parameters<typeof openProxy>): Promise<Proxy> {
  const proxy = await openProxy(...given);
  onTestFinished(proxy.close);
  return proxy;
}

/**
 * Starts a proxy, which the caller closes. `env` contains configuration variables, for example `{
 * CACHE_NOT_FOUND_TTL: '0s' }`, and constants from `fixed`; `ca` is the content of `upstream.caFile`.
 */
export async function openProxy(
  env: Record<string, string> = {},
  {
    ca,
    ...deps
  }: Partial<Pick<AppDeps, 'logger' | 'clock' | 'plugins' | 'createDispatcher'>> & { ca?: string } = {},
): Promise<Proxy> {
  const upstream = env['UPSTREAMS'] === undefined ? { UPSTREAM_URL } : {};
  const given = {
    ...upstream,
    LOG_LEVEL: 'silent',
    // Raises the default, because readers would get stale records when a busy machine stalls.
    ...(env['UPSTREAM_TIMEOUT'] === undefined && { UPSTREAM_STALE_AFTER: '9s' }),
    ...(ca !== undefined && { UPSTREAM_CA_FILE: fileOf(ca) }),
  };
  const config = configOf({ ...given, ...env });
  let time = STARTED_AT;
  const now = (): number => time;
  const metrics = createMetrics(now);
  const app = await createApp({
    config,
    createDispatcher: isMocked(config) ? createNodeHttpDispatcher : createPools,
    logger: createLogger({ level: config.log.level, destination: UNREAD }),
    metrics,
    clock: { now, wall: now, monotonic: () => performance.now() + time - STARTED_AT },
    ...(process.env['WITHOUT_PLUGINS'] === 'true' && { plugins: [] }),
    ...deps,
  });
  const server = createHttpServer(app.handler, config, app.context, app.connections);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const addresses = await openListeners(
    app.listeners.map((each) => ({ ...each, at: { ...each.at, host: '127.0.0.1' } })),
  );
  let drained: Promise<void> | undefined;
  const drainListeners = async (timeoutMs: number): Promise<void> => {
    await Promise.all(app.listeners.map(({ drain }) => drain(timeoutMs)));
  };
  const drainNative = (timeoutMs: number): Promise<void> => (drained ??= drainListeners(timeoutMs));
  const close = async (): Promise<void> => {
    await drainNative(0);
    server.closeAllConnections();
    server.close();
    await app.close();
  };
  return {
    url,
    tcpPort: portOf(addresses['nativeTcp']),
    udpPort: portOf(addresses['nativeUdp']),
    drainNative,
    app: { ...app, native: createNative(app.host, config) },
    ask: (target, question) => ask(url, target, question),
    pass: (ms) => {
      time += ms;
    },
    metrics: () => metrics.registry.getMetricsAsJSON(),
    metric: (name) => {
      const found = metrics.registry.getSingleMetric(name);
      if (found === undefined) throw new Error(`no metric ${name}`);
      return Promise.resolve(found.get());
    },
    connections: () => promisify(server.getConnections.bind(server))(),
    close,
  };
}
