// Tries a server once: whether it answers, how fast, with which version and certificate.
import { type Diagnosis, ServiceError } from '../errors.js';
import { createPools, type Certificate, presentedCertificate, type Trust } from './connections.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import { explain, scopeOf, toServiceError, type ServerKeys } from './failure.js';
import { type UpstreamResponse, invalidResponse, isRedirect, parseMembers } from './response.js';

export interface ProbeFailure extends Diagnosis {
  code: string;
}

export interface ProbeReport {
  /** From the first packet to the last byte of the answer. */
  ms: number;
  version?: string | undefined;
  /** Over TLS, even when it is not trusted. */
  certificate?: Certificate | undefined;
  /** Undefined when the server answers as it should. */
  failure?: ProbeFailure | undefined;
  /** Whether an answer came from the server itself, be it an error. */
  hasAnswered: boolean;
}

/** A request that every server of a kind answers cheaply, and the version that its answer gives. */
interface ProbeQuestion {
  path: string;
  /** @throws ServiceError for a good status with a body that this kind of server would not send */
  versionOf: (response: UpstreamResponse) => string | undefined;
}

/** The site of a Handle server, which names the version of its protocol (recorded from Handle.Net 9.3.1: 2.11). */
export const SITE: ProbeQuestion = {
  path: '/api/site',
  versionOf(response) {
    const { site } = parseMembers(response) as { site?: { protocolVersion?: unknown } | null };
    const version = site?.protocolVersion;
    return typeof version === 'string' ? version : undefined;
  },
};

export const PING: ProbeQuestion = { path: '/hrls/ping', versionOf: () => undefined };

export interface ServerProbe extends Trust {
  url: string;
  question: ProbeQuestion;
  keys: ServerKeys;
  pseudonym: string;
  timeoutMs: number;
  maxBodyBytes: number;
}

/** Opens connections of its own and closes them. When the signal aborts, the server counts as unreachable. */
export async function probeServer(probe: ServerProbe, signal: AbortSignal): Promise<ProbeReport> {
  const { url, timeoutMs, ca, fingerprint } = probe;
  const dispatcher = createPools({ connections: 1, ca, fingerprint });
  const close = (): void => void dispatcher.destroy();
  signal.addEventListener('abort', close, { once: true });
  const isTls = new URL(url).protocol === 'https:';
  try {
    const [answer, certificate] = await Promise.all([
      ask(probe, dispatcher),
      isTls ? presentedCertificate(url, { timeoutMs }) : undefined,
    ]);
    return { ...answer, certificate };
  } finally {
    signal.removeEventListener('abort', close);
    close();
  }
}

async function ask(probe: ServerProbe, dispatcher: UpstreamDispatcher): Promise<ProbeReport> {
  const { url, question, keys, pseudonym, timeoutMs, maxBodyBytes } = probe;
  const { origin, basePath } = parseAddress(url);
  const path = `${basePath}${question.path}`;
  const request = { origin, method: 'GET' as const, path, headers: requestHeaders({ pseudonym }) };
  const startedAt = performance.now();
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);
  try {
    const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes });
    return { ms: elapsedMs(), version: readVersion(response, question), hasAnswered: true };
  } catch (error) {
    const failure = toServiceError(error);
    const hasAnswered = scopeOf(failure) === 'record';
    return { ms: elapsedMs(), failure: { code: failure.code, ...explain(failure, keys) }, hasAnswered };
  }
}

const LOOP = { cause: 'the request came back (HTTP 508)', remedy: 'upstream.url leads to this proxy itself' };

/** A refusal is an answer too: another proxy in front of the server may hide this path. */
function readVersion(response: UpstreamResponse, question: ProbeQuestion): string | undefined {
  const { status } = response;
  if (status === 508) throw new ServiceError('LOOP_DETECTED', { diagnosis: LOOP });
  if (status >= 500) {
    throw new ServiceError('UPSTREAM_FAILED', {
      diagnosis: { cause: `HTTP ${status}` },
      upstreamStatus: status,
    });
  }
  if (isRedirect(status)) throw invalidResponse('a redirect', response);
  return status < 300 ? question.versionOf(response) : undefined;
}
