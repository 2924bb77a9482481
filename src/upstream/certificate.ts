// The certificate that a server presents, for the operator to compare or to pin.
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect } from 'node:tls';

export interface Certificate {
  /** SHA-256, as `upstream.fingerprint` takes it. */
  fingerprint: string;
  /** ISO 8601. */
  expires: string;
}

/** Trusts every certificate, so that one that is refused can be compared too; sends nothing over the connection. */
export function presentedCertificate(
  url: string,
  { timeoutMs, defaultPort = 443 }: { timeoutMs: number; defaultPort?: number },
): Promise<Certificate | undefined> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const name = isIP(host) === 0 ? { servername: host } : {};
  const at = { host, port: Number(port || defaultPort), rejectUnauthorized: false, ...name };
  return new Promise((resolve) => {
    const socket = connect(at, () => {
      const { raw } = socket.getPeerCertificate() as { raw?: Buffer };
      resolve(raw && describe(raw));
      socket.destroy();
    });
    socket.setTimeout(timeoutMs, () => socket.destroy());
    socket
      .on('error', () => undefined)
      .once('close', () => {
        resolve(undefined);
      });
  });
}

/** Undefined for one that OpenSSL accepts and Node cannot read. */
function describe(raw: Buffer): Certificate | undefined {
  try {
    const { fingerprint256, validTo } = new X509Certificate(raw);
    return { fingerprint: fingerprint256, expires: new Date(validTo).toISOString() };
  } catch {
    return undefined;
  }
}
