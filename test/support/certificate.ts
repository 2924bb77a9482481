// Creates temporary certificates for TLS servers on loopback.
import { X509Certificate } from 'node:crypto';
import { generate } from 'selfsigned';

export interface Certificate {
  key: string;
  cert: string;
  /** SHA-256 fingerprint in upper-case hexadecimal with colons. */
  fingerprint: string;
}

/** Creates a self-signed certificate, by default for 127.0.0.1; `name`: an additional host name. */
export async function createCertificate({
  ip = '127.0.0.1',
  name = 'localhost',
  notAfterDate = new Date(Date.now() + 3_600_000),
  keyType = 'ec',
}: { ip?: string; name?: string; notAfterDate?: Date; keyType?: 'ec' | 'rsa' } = {}): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: 'loopback' }], {
    keyType,
    algorithm: 'sha256',
    notBeforeDate: new Date(notAfterDate.getTime() - 7_200_000),
    notAfterDate,
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 7, ip },
          { type: 2, value: name },
        ],
      },
    ],
  });
  const { fingerprint256 } = new X509Certificate(made.cert);
  return { key: made.private, cert: made.cert, fingerprint: fingerprint256 };
}
