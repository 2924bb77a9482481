// What talks to one Handle server and its mirrors: connections, limits, and the clients that use them.
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import type { TimeSlicer } from '../time-slicer.js';
import { type UpstreamClient, createUpstreamClient } from './client.js';
import { type LimiterUsage, ConcurrencyLimiter } from './concurrency-limiter.js';
import { type Connections, type createPools, createConnections } from './connections.js';
import { readTrust } from './fingerprint.js';
import { type RecordClient, createRecordClient } from './record-client.js';
import type { ServerKeys } from './server-keys.js';

export interface HandleServerSettings
  extends ServerConfig, Pick<Config['upstream'], 'caseSensitive' | 'retryAfterMs' | 'mirrorMaxTtlMs'> {}

export interface HandleServerParts {
  /** Our own name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  slicer: TimeSlicer;
  /** undici pools by default. */
  createDispatcher?: typeof createPools | undefined;
}

export interface HandleServer extends Pick<ServerConfig, 'url' | 'prefixes' | 'readOnly' | 'writeTimeoutMs'> {
  /** Reads that callers share. */
  reads: UpstreamClient;
  /** For requests with the credentials of one caller. */
  records: RecordClient;
  /** For requests that are forwarded; they share the limiter with those of `records`. */
  writeAgent: Connections['writeAgent'];
  limiter: ConcurrencyLimiter;
  /** Whether a read with a wrong login is refused: over plain http it is answered as if it had none. */
  checksLogins: boolean;
  /** Called when a write is refused because its login was ignored; undefined over https. */
  onIgnoredLogin: (() => void) | undefined;
  usage: () => { read: LimiterUsage; passed: LimiterUsage };
  close: Connections['close'];
}

/** `keysOf`: the configuration keys of the server at an address. */
export function createHandleServer(
  settings: HandleServerSettings,
  context: Context,
  { keysOf, createDispatcher, ...parts }: HandleServerParts & { keysOf: (url: string) => ServerKeys },
): HandleServer {
  const { url, prefixes, readOnly, writeTimeoutMs, connections } = settings;
  const { dispatcher, writeAgent, close } = createConnections(
    { url, connections, ...readTrust(settings) },
    createDispatcher,
  );
  const limiter = new ConcurrencyLimiter({
    ...settings,
    // Fixed: the latency of a write says nothing about how busy the server is, that of a list depends on its client.
    minConcurrency: settings.concurrency,
    onRejected: () => {
      context.metrics.countRejected({ server: url, kind: 'passed' });
    },
  });
  const reads = createUpstreamClient(settings, context, { ...parts, dispatcher, keysOf });
  const onIgnoredLogin = warnOfIgnoredLogins(url, context);
  return {
    url,
    prefixes,
    readOnly,
    writeTimeoutMs,
    reads,
    records: createRecordClient(settings, { ...parts, limiter, dispatcher, onIgnoredLogin }),
    writeAgent,
    limiter,
    checksLogins: !readOnly && url.startsWith('https:'),
    onIgnoredLogin,
    usage: () => ({ read: reads.usage(), passed: limiter.usage() }),
    close,
  };
}

/** Clients repeat a refused write. */
const WARN_EVERY_MS = 60_000;

/**
 * Called for a write with a login that was refused as if it had none. Not before: another proxy, or a port that the
 * server's operator has marked as secure, takes logins over http. Undefined over https.
 */
function warnOfIgnoredLogins(url: string, { log, clock }: Context): (() => void) | undefined {
  if (!url.startsWith('http:')) return undefined;
  let warnedAt = -Infinity;
  return function onIgnoredLogin() {
    if (clock.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = clock.now();
    const remedy = 'set upstream.url to an https address';
    log.warn({ upstream: url, remedy }, 'the Handle server ignored the login of a write');
  };
}
