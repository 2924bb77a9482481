// Checks a certificate against the one fingerprint the operator trusts.
import type { TLSSocket } from 'node:tls';

/** `code` of the error for a certificate with another fingerprint. */
export const PIN_MISMATCH = 'ERR_TLS_PIN_MISMATCH';

/** Says what is wrong with the certificate of a connected socket, or nothing. */
export type PinCheck = (socket: TLSSocket) => Error | undefined;

/** Makes the check for SHA-256 fingerprints in hexadecimal, colons or not, separated by commas. */
export function createPinCheck(fingerprint: string): PinCheck {
  const pinned = fingerprint.split(',').map(plainHex);
  return function checkPin(socket) {
    // A resumed session may come without a certificate: that is no match either.
    const { fingerprint256 = '' } = socket.getPeerCertificate() as { fingerprint256?: string };
    if (pinned.includes(plainHex(fingerprint256))) return undefined;
    const error = new Error(`certificate has the SHA-256 fingerprint ${fingerprint256 || '(none)'}`);
    return Object.assign(error, { code: PIN_MISMATCH });
  };
}

const plainHex = (fingerprint: string): string => fingerprint.replaceAll(':', '').toUpperCase();
