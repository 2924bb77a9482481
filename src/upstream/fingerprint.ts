// Which certificates are trusted: those of an authority, or those with a pinned fingerprint.
import { readFileSync } from 'node:fs';
import type { TLSSocket } from 'node:tls';

export interface Trust {
  /** PEM text of the only authorities to trust. */
  ca?: string | undefined;
  /** SHA-256 of the only certificates to trust, separated by commas; then neither chain nor name matters. */
  fingerprint?: string | undefined;
}

/** @throws Error when the file cannot be read */
export const readTrust = ({
  caFile,
  fingerprint,
}: {
  caFile?: string | undefined;
  fingerprint?: string | undefined;
}): Trust => ({ ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8'), fingerprint });

/** `code` of the error for a certificate with another fingerprint. */
export const PIN_MISMATCH = 'ERR_TLS_PIN_MISMATCH';

/** Options of a TLS connection. A resumed session may come without a certificate, so none is kept for a pin. */
export function tlsOptions({ ca, fingerprint }: Trust): {
  ca?: string;
  rejectUnauthorized?: boolean;
  maxCachedSessions?: number;
} {
  if (fingerprint !== undefined) return { rejectUnauthorized: false, maxCachedSessions: 0 };
  return ca === undefined ? {} : { ca };
}

/** The error for a connected socket whose certificate is not the pinned one; undefined when it may be used. */
export type PinCheck = (socket: TLSSocket) => Error | undefined;

/** Makes the check for fingerprints in hexadecimal, with or without colons. */
export function createPinCheck({ fingerprint }: Trust): PinCheck {
  if (fingerprint === undefined) return () => undefined;
  const pinned = fingerprint.split(',').map(plainHex);
  return function checkPin(socket) {
    const { fingerprint256 = '' } = socket.getPeerCertificate() as { fingerprint256?: string };
    if (pinned.includes(plainHex(fingerprint256))) return undefined;
    const error = new Error(`certificate has the SHA-256 fingerprint ${fingerprint256 || '(none)'}`);
    return Object.assign(error, { code: PIN_MISMATCH });
  };
}

const plainHex = (fingerprint: string): string => fingerprint.replaceAll(':', '').toUpperCase();
