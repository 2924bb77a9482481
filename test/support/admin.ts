// Creates the admin listener alone, with no-op operations.
import type { RequestListener } from 'node:http';
import type { AdminInterfaces } from '../../src/plugin.js';
import type { Host, Operations } from '../../src/host.js';
import { createAdmin } from '../../src/plugins/admin/admin.js';
import { admin } from '../../src/plugins/admin/plugin.js';
import type { Statistics } from '../../src/observe/statistics.js';
import { createReadiness } from '../../src/observe/health.js';
import type { Context } from '../../src/context.js';
import { type Metrics, createMetrics } from '../../src/observe/metrics.js';
import { testContext } from './context.js';
import { partial } from './partial.js';
import { configFrom } from './load-config.js';

const unused = (): never => {
  throw new Error('not used by this test');
};

const NO_READS = { latency: { count: 0, buckets: [] } };

export const noOperations: Operations = {
  purge: unused,
  inspect: () => Promise.resolve([]),
  stats: () => Promise.resolve({ requests: NO_READS, upstream: NO_READS } as unknown as Statistics),
  setLogLevel: unused,
};

interface AloneOptions extends Partial<AdminInterfaces> {
  readiness?: Host['readiness'];
  blockedMs?: Host['blockedMs'];
  operations?: Operations;
  token?: string | undefined;
  metrics?: Metrics;
  context?: Context;
  /** Called with each logged error. */
  onUnexpected?: (error: unknown) => void;
}

/** Creates an admin listener, by default without a token. */
export function createAdminAlone({
  token = '',
  metrics = createMetrics(),
  context = testContext({ metrics }),
  onUnexpected,
  plugins = [],
  adminHandlers = {},
  ...parts
}: AloneOptions = {}): RequestListener {
  Object.assign(context.log, { error: ({ err }: { err: unknown }) => onUnexpected?.(err) });
  const config = configFrom({ env: token === '' ? {} : { ADMIN_TOKEN: token } });
  const host = {
    ...context,
    settings: { current: config },
    readiness: createReadiness(),
    blockedMs: () => undefined,
    operations: noOperations,
    ...parts,
  };
  return createAdmin(partial<Host>(host), { plugins: [admin, ...plugins], adminHandlers });
}
