// Probes a server once for response, latency, version and certificate.
import { X509Certificate } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { isIP } from 'node:net';
import { type TLSSocket, connect } from 'node:tls';
import { tryDecode } from '../handle/bytes.js';
import { outgoingProxy } from '../config/outgoing-proxy.js';
import { type Diagnosis, ServiceError } from '../errors.js';
import { createPools, type Trust } from './connections.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import { explainServerFailure, toServiceError, type ServerKeys } from './failure.js';
import {
  type UpstreamResponse,
  describeResponse,
  invalidResponse,
  isRedirect,
  parseMembers,
} from './response.js';
import { openTunnel, withoutBrackets } from './hosts.js';
import type { ProbeQuestion, SourceRequest } from './contract.js';

export interface ProbeFailure extends Diagnosis {
  code: string;
}

export interface ProbeReport {
  /** Time to the last response byte (ms), including the connection set-up. */
  ms: number;
  version?: string | undefined;
  /** Certificate presented over TLS, even if untrusted. */
  certificate?: Certificate | undefined;
  /** Undefined after a successful probe. */
  failure?: ProbeFailure | undefined;
  /** A problem of a server that responds. */
  warning?: Diagnosis | undefined;
}

export const pingQuestion = (url: string): ProbeQuestion => ({
  method: 'GET',
  path: `${parseAddress(url).basePath}/hrls/ping`,
});

export interface ServerProbe extends Trust {
  url: string;
  question: ProbeQuestion;
  keys: ServerKeys;
  pseudonym: string;
  timeoutMs: number;
  maxBodyBytes: number;
  /** The time that readers wait for the server before they get a stale record. */
  staleAfterMs: number;
}

/**
 * Probes a server over separate connections. An aborted signal counts as an unreachable server. Calls `onAnswered`
 * once the server itself has responded, even with an error; its version and certificate may follow much later.
 */
export async function probeServer(
  probe: ServerProbe,
  { signal, onAnswered }: { signal: AbortSignal; onAnswered: () => void },
): Promise<ProbeReport> {
  const { url, timeoutMs, ca, fingerprint, cert, key } = probe;
  const dispatcher = createPools({ connections: 1, ca, fingerprint, cert, key });
  const close = (): void => void dispatcher.destroy();
  // Probes of all servers share the signal, and Node.js would warn of a leak above ten.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', close, { once: true });
  const isTls = new URL(url).protocol === 'https:';
  try {
    const [answer, certificate] = await Promise.all([
      ask(probe, dispatcher, onAnswered),
      isTls ? presentedCertificate(url, { timeoutMs, cert, key }) : undefined,
    ]);
    return { ...answer, certificate };
  } finally {
    signal.removeEventListener('abort', close);
    close();
  }
}

async function ask(
  probe: ServerProbe,
  dispatcher: UpstreamDispatcher,
  onAnswered: () => void,
): Promise<ProbeReport> {
  const { url, question, keys, pseudonym, timeoutMs, maxBodyBytes, staleAfterMs } = probe;
  const { origin } = parseAddress(url);
  const send = (request: SourceRequest): Promise<UpstreamResponse> => {
    const headers = requestHeaders({ pseudonym });
    return exchange(dispatcher, { origin, ...request, headers }, { timeoutMs, maxBodyBytes });
  };
  const startedAt = performance.now();
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);
  try {
    assertAnswer(await send(question), question, onAnswered);
    const ms = elapsedMs();
    const { versionPath } = question;
    const version =
      versionPath &&
      (await send({ method: 'GET', path: versionPath })
        .then(versionIn)
        .catch(() => undefined));
    return { ms, version, ...(ms > staleAfterMs && { warning: SLOW }) };
  } catch (error) {
    const failure = toServiceError(error);
    return { ms: elapsedMs(), failure: { code: failure.code, ...explainServerFailure(failure, keys) } };
  }
}

const SLOW: Diagnosis = {
  cause: 'the response took longer than upstream.staleAfter',
  remedy: 'check the load of the server and the network, or raise upstream.staleAfter',
};

const LOOP = { cause: 'the request came back (HTTP 508)', remedy: 'upstream.url leads to this proxy itself' };

/** Gateway or proxy statuses: even in Handle JSON they do not prove that a Handle server responded. */
const OF_GATEWAYS: readonly number[] = [502, 503, 504, 508];

/**
 * Calls `onAnswered` for a response of the server itself. An error in Handle JSON is one, because readers receive it.
 *
 * @throws ServiceError for any response but a success
 */
function assertAnswer(
  response: UpstreamResponse,
  { check, mayRedirect = false }: ProbeQuestion,
  onAnswered: () => void,
): void {
  if (isRedirect(response.status) && !mayRedirect) throw invalidResponse('a redirect', response);
  const failure = serverError(response);
  try {
    if (!OF_GATEWAYS.includes(response.status)) {
      check?.(response);
      onAnswered();
    }
  } catch (problem) {
    throw failure ?? problem;
  }
  if (failure !== undefined) throw failure;
}

function serverError(response: UpstreamResponse): ServiceError | undefined {
  const { status } = response;
  if (status < 500) return undefined;
  if (status === 508) return new ServiceError('LOOP_DETECTED', { diagnosis: LOOP });
  const remedy = `see the log of the server${OF_GATEWAYS.includes(status) ? ', or of the gateway in front of it' : ''}`;
  const diagnosis = { cause: describeResponse(response), remedy };
  return new ServiceError('UPSTREAM_FAILED', { diagnosis, upstreamStatus: status });
}

function versionIn(response: UpstreamResponse): string | undefined {
  const { site } = parseMembers(response) as { site?: { protocolVersion?: unknown } | null };
  const version = site?.protocolVersion;
  return typeof version === 'string' ? version : undefined;
}

interface Certificate {
  /** SHA-256 fingerprint in the format of `upstream.fingerprint`. */
  fingerprint: string;
  /** Expiry as ISO 8601. */
  expires: string;
}

/** Reads a server's certificate unverified, so that the operator can examine a rejected one. Sends no request. */
export function presentedCertificate(
  url: string,
  { timeoutMs, defaultPort = 443, cert, key }: Trust & { timeoutMs: number; defaultPort?: number },
): Promise<Certificate | undefined> {
  const { hostname, port, protocol } = new URL(url);
  const host = withoutBrackets(hostname);
  const name = isIP(host) === 0 ? { servername: host } : {};
  const client = { cert, key, rejectUnauthorized: false, ...name };
  const proxy = outgoingProxy({ hostname, port, protocol });
  return new Promise((resolve) => {
    const read = (socket: TLSSocket): void => {
      socket.once('secureConnect', () => {
        const { raw } = socket.getPeerCertificate() as { raw?: Buffer };
        resolve(raw && describeCertificate(raw));
        socket.destroy();
      });
      // Also for a handshake that trickles in.
      const late = setTimeout(() => socket.destroy(), timeoutMs);
      socket
        .on('error', () => undefined)
        .once('close', () => {
          clearTimeout(late);
          resolve(undefined);
        });
    };
    if (proxy === undefined) {
      read(connect({ ...client, host, port: Number(port || defaultPort) }));
      return;
    }
    openTunnel(proxy, { hostname, port, protocol }, { timeoutMs }, (...[error, socket]) => {
      if (error) resolve(undefined);
      else read(connect({ ...client, socket }));
    });
  });
}

/** Returns undefined for a certificate that OpenSSL accepts but Node cannot parse. */
function describeCertificate(raw: Buffer): Certificate | undefined {
  return tryDecode((bytes) => {
    const { fingerprint256, validTo } = new X509Certificate(bytes);
    return { fingerprint: fingerprint256, expires: new Date(validTo).toISOString() };
  }, raw);
}
