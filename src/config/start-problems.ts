// Checks beyond the schema before a start: an upstream is given, and files can be read or written.
import { X509Certificate } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from './schema.js';
import { isUpstreamGiven } from './upstream-servers.js';

interface StartProblem {
  key: string;
  text: string;
}

const NO_UPSTREAM =
  'set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000';

const NO_REUSE_PORT = `needs Node.js 22.12 or later on Linux, FreeBSD, Solaris or AIX, and this is ${process.version} on ${process.platform}; give each instance another port and put HAProxy or nginx in front`;

/** Systems that balance connections and datagrams over the sockets of a port. */
const SPREADING: readonly string[] = ['linux', 'freebsd', 'sunos', 'aix'];

/** Whether several processes can share a port (SO_REUSEPORT) with this Node.js on this system. */
export function canReusePort(
  version: string = process.versions.node,
  platform: string = process.platform,
): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  // Node.js has `reusePort` of `net` and `dgram` since 23.1 and 22.12.
  const isNew = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  return isNew && SPREADING.includes(platform);
}

type Judge = (text: string, path: string) => string | undefined;

export function startProblems(config: Config, readFile: (path: string) => string): StartProblem[] {
  const { certificateFile } = config.native.site;
  const inFile = (path: string | undefined, judge: Judge): string | undefined => {
    if (path === undefined) return undefined;
    return failureOf(`${path} cannot be read`, () => judge(readFile(path), path));
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
    ['seed.file', seedProblem(config.seed.file)],
    ['cache.snapshot.file', folderProblem(config.cache.snapshot.file, 'the snapshot cannot be written, ')],
    ['audit.file', folderProblem(config.audit.file, 'the audit file cannot be written, ')],
  ];
  return problems.flatMap(([key, text]) => (text === undefined ? [] : [{ key, text }]));
}

/** The problem found by the check, or the failure of the check itself; undefined when there is none. */
function failureOf(failed: string, check: () => string | undefined): string | undefined {
  try {
    return check();
  } catch (error) {
    return `${failed}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Checks access only: the file may have gigabytes, and its lines are read later. */
function seedProblem(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  return failureOf(`${path} cannot be read`, () => {
    accessSync(path, constants.R_OK);
    return isFolder(path) ? `${path} is a folder: give a file of handle-resolver-proxy export` : undefined;
  });
}

/** Checks the folder, in which files are created: a snapshot is renamed to its path, an audit file is rotated. */
function folderProblem(path: string | undefined, failed: string): string | undefined {
  if (path === undefined) return undefined;
  const folder = dirname(path);
  const remedy = `create ${folder}, and let this user write there (systemd: StateDirectory=)`;
  return failureOf(`${failed} ${remedy}`, () => {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return isFolder(path) ? `${path} is a folder: give the path of a file` : undefined;
  });
}

/** The MaxMind format has this marker before its metadata. */
const DATABASE_MARK = 'MaxMind.com';

const databaseProblem: Judge = (text, path) =>
  text.includes(DATABASE_MARK) ? undefined : `${path} is not a database in the MaxMind format`;

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^]*?-----END [A-Z0-9 ]+-----/g;

/** OpenSSL ignores unreadable certificates in a CA file, and every connection would then fail. */
function pemProblem(text: string, path: string): string | undefined {
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0)
    return `${path} has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`;
  const broken = certificates.findIndex((certificate) => !isCertificate(certificate));
  return broken < 0 ? undefined : `certificate ${broken + 1} of ${path} is broken`;
}

/** Native clients support RSA and DSA keys only, and certificates no longer use DSA. */
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
