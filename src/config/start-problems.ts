// What a valid configuration still lacks for a start: the upstream, readable certificates and databases.
import { X509Certificate } from 'node:crypto';
import { canReusePort } from './reuse-port.js';
import type { Config } from './schema.js';
import { isUpstreamGiven } from './upstream-servers.js';

interface StartProblem {
  key: string;
  text: string;
}

const NO_UPSTREAM =
  'set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000';

const NO_REUSE_PORT = `needs Node.js 22.12 or later on Linux, FreeBSD, Solaris or AIX, and this is ${process.version} on ${process.platform}; give each instance another port and put HAProxy or nginx in front`;

export function startProblems(config: Config, readFile: (path: string) => string): StartProblem[] {
  const pemFile = (key: string, path: string | undefined): StartProblem[] => {
    const text = path === undefined ? undefined : pemProblem(path, readFile);
    return text === undefined ? [] : [{ key, text }];
  };
  return [
    ...(isUpstreamGiven(config) ? [] : [{ key: 'upstream.url', text: NO_UPSTREAM }]),
    ...(config.server.reusePort && !canReusePort() ? [{ key: 'server.reusePort', text: NO_REUSE_PORT }] : []),
    ...pemFile('upstream.caFile', config.upstream.caFile),
    ...config.upstreams.flatMap(({ caFile }, at) => pemFile(`upstreams.${at}.caFile`, caFile)),
    ...pemFile('redis.caFile', config.redis.caFile),
    ...pemFile('native.site.certificateFile', config.native.site.certificateFile),
    ...siteKeyProblem(config.native.site.certificateFile, readFile),
    ...databaseProblems(config.redirect.countryDatabase, readFile),
  ];
}

/** The marker before the metadata of the format. */
const DATABASE_MARK = 'MaxMind.com';

function databaseProblems(path: string | undefined, readFile: (path: string) => string): StartProblem[] {
  if (path === undefined) return [];
  const key = 'redirect.countryDatabase';
  try {
    if (readFile(path).includes(DATABASE_MARK)) return [];
    return [{ key, text: `${path} is not a database in the MaxMind format` }];
  } catch (error) {
    return [
      { key, text: `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}` },
    ];
  }
}

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^]*?-----END [A-Z0-9 ]+-----/g;

/** OpenSSL ignores what it cannot read in such a file, and then trusts nobody. */
function pemProblem(path: string, readFile: (path: string) => string): string | undefined {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    return `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0)
    return `${path} has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`;
  const broken = certificates.findIndex((certificate) => !isCertificate(certificate));
  return broken < 0 ? undefined : `certificate ${broken + 1} of ${path} is broken`;
}

/** Clients of the native protocol know RSA and DSA keys alone, and certificates have DSA no more. */
function siteKeyProblem(path: string | undefined, readFile: (path: string) => string): StartProblem[] {
  if (path === undefined || pemProblem(path, readFile) !== undefined) return [];
  const isRsa = new X509Certificate(readFile(path)).publicKey.asymmetricKeyType === 'rsa';
  return isRsa ? [] : [{ key: 'native.site.certificateFile', text: `${path} has no RSA key` }];
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
