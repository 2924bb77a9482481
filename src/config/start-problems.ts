// What a valid configuration still lacks for a start: the upstream, readable certificates and databases.
import { X509Certificate } from 'node:crypto';
import type { Config } from './schema.js';
import { isUpstreamGiven } from './upstream-servers.js';

interface StartProblem {
  key: string;
  text: string;
}

const NO_UPSTREAM =
  'set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000';

const NO_REUSE_PORT = `needs Node.js 22.12 or later on Linux, FreeBSD, Solaris or AIX, and this is ${process.version} on ${process.platform}; give each instance another port and put HAProxy or nginx in front`;

/** Systems that spread connections and datagrams over the sockets of a port. */
const SPREADING: readonly string[] = ['linux', 'freebsd', 'sunos', 'aix'];

/** Whether several processes can share a port (SO_REUSEPORT) with this Node.js on this system. */
export function canReusePort(
  version: string = process.versions.node,
  platform: string = process.platform,
): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  // `reusePort` of `net` and `dgram` came with 23.1 and 22.12.
  const isNew = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  return isNew && SPREADING.includes(platform);
}

type Judge = (text: string, path: string) => string | undefined;

export function startProblems(config: Config, readFile: (path: string) => string): StartProblem[] {
  const { certificateFile } = config.native.site;
  const inFile = (path: string | undefined, judge: Judge): string | undefined => {
    if (path === undefined) return undefined;
    try {
      return judge(readFile(path), path);
    } catch (error) {
      return `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const problems: [key: string, text: string | undefined][] = [
    ['upstream.url', isUpstreamGiven(config) ? undefined : NO_UPSTREAM],
    ['server.reusePort', config.server.reusePort && !canReusePort() ? NO_REUSE_PORT : undefined],
    ['upstream.caFile', inFile(config.upstream.caFile, pemProblem)],
    ...config.upstreams.map(({ caFile }, at): [string, string | undefined] => [
      `upstreams.${at}.caFile`,
      inFile(caFile, pemProblem),
    ]),
    ['redis.caFile', inFile(config.redis.caFile, pemProblem)],
    ['native.site.certificateFile', inFile(certificateFile, siteKeyProblem)],
    ['redirect.countryDatabase', inFile(config.redirect.countryDatabase, databaseProblem)],
  ];
  return problems.flatMap(([key, text]) => (text === undefined ? [] : [{ key, text }]));
}

/** The marker before the metadata of the format. */
const DATABASE_MARK = 'MaxMind.com';

const databaseProblem: Judge = (text, path) =>
  text.includes(DATABASE_MARK) ? undefined : `${path} is not a database in the MaxMind format`;

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^]*?-----END [A-Z0-9 ]+-----/g;

/** OpenSSL ignores what it cannot read in such a file, and then trusts nobody. */
function pemProblem(text: string, path: string): string | undefined {
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0)
    return `${path} has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`;
  const broken = certificates.findIndex((certificate) => !isCertificate(certificate));
  return broken < 0 ? undefined : `certificate ${broken + 1} of ${path} is broken`;
}

/** Clients of the native protocol know RSA and DSA keys alone, and certificates have DSA no more. */
function siteKeyProblem(text: string, path: string): string | undefined {
  const problem = pemProblem(text, path);
  if (problem !== undefined) return problem;
  return new X509Certificate(text).publicKey.asymmetricKeyType === 'rsa'
    ? undefined
    : `${path} has no RSA key`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
