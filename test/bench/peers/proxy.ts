// Starts the built proxy.
import { fileURLToPath } from 'node:url';
import { start, untilAnswers } from '../children.js';
import type { Place } from '../cores.js';
import type { Build } from './build.js';
import type { Crew } from './crew.js';
import { OURS, OURS_AT_WARN, type Peer, peerOf } from './peer.js';
import { FIXED_VALUES } from '../../support/fixed.js';
import { freePort } from '../../support/free-port.js';

export interface Proxy extends Peer {
  adminUrl: string;
}

export interface ProxyOptions {
  /** Undefined if `env` contains `UPSTREAMS`. */
  upstreamUrl?: string;
  name?: string;
  /** Build of a different commit. */
  build?: Build;
  place?: Place;
  /** Configuration variables. */
  env?: Record<string, string>;
}

/** Output of `npm run build`, relative to dist-bench/test/bench/peers. */
const PROGRAM = fileURLToPath(new URL('../../../../dist/main.js', import.meta.url));

const PRELOAD = fileURLToPath(new URL('../../../../test/support/preload-fixed.js', import.meta.url));

/** The default configuration, with 1 GiB for the caches as its peers have, of which 128 MiB for prepared responses. */
const ENV = {
  HOST: '127.0.0.1',
  CACHE_MAX_BYTES: '896MiB',
  NODE_ENV: 'production',
};

/** Writes no log of requests, as nginx and Varnish do here. */
export const startUnlogged = (upstreamUrl: string): Promise<Proxy> =>
  startProxy({ upstreamUrl, name: OURS_AT_WARN, env: { LOG_LEVEL: 'warn' } });

export async function startProxy({
  upstreamUrl,
  build = { name: OURS, program: PROGRAM },
  name = build.name,
  place = 'server',
  env = {},
}: ProxyOptions): Promise<Proxy> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const preload = env[FIXED_VALUES] === undefined ? [] : ['--import', PRELOAD];
  const child = start([process.execPath, ...preload, build.program], {
    place,
    env: {
      ...ENV,
      ...(upstreamUrl !== undefined && { UPSTREAM_URL: upstreamUrl }),
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      ...env,
    },
  });
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await untilAnswers(`${adminUrl}/readyz`, child);
  return { ...peerOf(name, `http://127.0.0.1:${port}`, child), adminUrl };
}

/** Starts a proxy of the compared commit, if there is one. */
export async function startCompared(
  { crew, compared }: { crew: Crew; compared: Build | undefined },
  upstreamUrl: string,
  env: Record<string, string> = {},
): Promise<Proxy[]> {
  return compared === undefined ? [] : [await crew.start(startProxy({ upstreamUrl, build: compared, env }))];
}

/** Returns the number of Redis errors and timeouts; after each, the proxy runs without Redis for a while. */
export async function redisErrorsOf({ adminUrl }: Proxy): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const counts = [...text.matchAll(/^handle_proxy_redis_errors_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}
