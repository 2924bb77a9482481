// Implements `resolve --direct`, which reads from a Handle server directly and verifies its certificate.
import { ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import { createPools, readTrust, type Trust } from '../upstream/connections.js';
import { exchange, parseAddress } from '../upstream/exchange.js';
import { explainServerFailure, type ServerKeys } from '../upstream/failure.js';
import { presentedCertificate } from '../upstream/probe.js';
import { failureReason } from './client.js';
import { EXIT, Failure, printNote } from './terminal.js';

export interface TrustOptions {
  /** SHA-256 fingerprints; only certificates with one of them are trusted. */
  fingerprint?: string;
  /** PEM file of the certificate authority. */
  ca?: string;
  insecure?: boolean;
}

const LIMITS = { timeoutMs: 30_000, maxBodyBytes: 64 * 1024 ** 2 };

/** The advice of the proxy names keys for its timeouts, which this command does not read. */
const SLOW = 'check the load of the server';

const OPTIONS: ServerKeys = {
  url: '--direct',
  schemes: 'http or https',
  trust: 'give --ca or --fingerprint, or --insecure to accept any certificate',
  pin: '--fingerprint',
};

/** @throws Failure with the cause and the remedy if no response arrives */
export async function readDirectly(
  url: string,
  handle: string,
  options: TrustOptions,
): Promise<{ status: number; text: string }> {
  const { origin, basePath } = parseAddress(url);
  const dispatcher = createPools({ connections: 1, ...(await trustOf(url, options)) });
  try {
    const path = `${basePath}/api/handles/${handleToPath(handle)}`;
    const request = { origin, method: 'GET' as const, path, headers: ['Accept', 'application/json'] };
    const { status, body } = await exchange(dispatcher, request, LIMITS);
    return { status, text: body };
  } catch (error) {
    throw await asFailure(url, error);
  } finally {
    await dispatcher.destroy();
  }
}

async function trustOf(url: string, { fingerprint, ca, insecure }: TrustOptions): Promise<Trust> {
  if (insecure === true) {
    const presented = await presentedAt(url);
    if (presented !== undefined) printNote(`certificate not verified: SHA-256 ${presented}`);
    return { fingerprint: presented };
  }
  try {
    return readTrust({ caFile: ca, fingerprint });
  } catch (error) {
    throw new Failure(`cannot read ${ca}: ${failureReason(error)}`, EXIT.usage);
  }
}

async function presentedAt(url: string): Promise<string | undefined> {
  if (!url.startsWith('https:')) return undefined;
  return (await presentedCertificate(url, LIMITS))?.fingerprint;
}

async function asFailure(url: string, error: unknown): Promise<unknown> {
  if (!(error instanceof ServiceError)) return error;
  const { cause, remedy } = explainServerFailure(error, OPTIONS);
  // A connection that is not opened in time has a cause, and advice of its kind.
  const advice = error.code === 'UPSTREAM_TIMEOUT' && error.cause === undefined ? SLOW : remedy;
  const presented = await presentedAt(url);
  const parts = [cause, advice, presented && `it presents the certificate SHA-256 ${presented}`];
  return new Failure(`cannot resolve at ${url}: ${parts.filter((part) => part !== undefined).join('; ')}`);
}
