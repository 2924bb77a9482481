// Checks what the schema cannot: a configured upstream, shareable ports, and readable or writable files.
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { tryDecode } from '../handle/bytes.js';
import { errorText } from '../errors.js';
import type { Config } from './schema.js';
import type { StartProblem } from './fields.js';
import { fileBehindLink, isReplaceable } from './given-files.js';
import { isUpstreamGiven } from './upstream-servers.js';

const NO_UPSTREAM =
  'set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000';

const NO_REUSE_PORT = `needs Node.js 22.12 or later on Linux, FreeBSD, Solaris or AIX, and this is ${process.version} on ${process.platform}; give each instance another port and put HAProxy or nginx in front`;

/** Platforms that balance connections and datagrams across a port's sockets. */
const SPREADING: readonly string[] = ['linux', 'freebsd', 'sunos', 'aix'];

/** Whether processes can share a port (SO_REUSEPORT) on this Node.js version and platform. */
export function canReusePort(
  version: string = process.versions.node,
  platform: string = process.platform,
): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  // `net` and `dgram` support `reusePort` since Node.js 23.1 and 22.12.
  const isNew = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  return isNew && SPREADING.includes(platform);
}

export type Judge = (text: string, path: string) => string | undefined;

/** Returns what is wrong with a file; undefined if none is given. `check` reads it. */
export const pathProblem = (
  path: string | undefined,
  check: (path: string) => string | undefined,
): string | undefined =>
  path === undefined ? undefined : failureOf(`${path} cannot be read`, () => check(path));

export const fileProblem = (
  given: string | undefined,
  readFile: (path: string) => string,
  judge: Judge,
): string | undefined => pathProblem(given, (path) => judge(readFile(path), path));

export function startProblems(config: Config, readFile: (path: string) => string): readonly StartProblem[] {
  return [
    ['upstream.url', isUpstreamGiven(config) ? undefined : NO_UPSTREAM],
    ['server.reusePort', config.server.reusePort && !canReusePort() ? NO_REUSE_PORT : undefined],
    ...trustProblems('upstream', config.upstream, readFile),
    ...config.upstreams.flatMap((server, at) => trustProblems(`upstreams.${at}`, server, readFile)),
    ['redis.caFile', fileProblem(config.redis.caFile, readFile, pemProblem)],
  ];
}

function trustProblems(
  key: string,
  { caFile, clientCertificateFile, clientKeyFile }: Config['upstream'] | Config['upstreams'][number],
  readFile: (path: string) => string,
): StartProblem[] {
  const inFile = (path: string | undefined, judge: Judge) => fileProblem(path, readFile, judge);
  const ofCertificate = inFile(clientCertificateFile, clientCertificateProblem);
  const judgeKey: Judge = (text, path) =>
    ofCertificate === undefined && clientCertificateFile !== undefined
      ? clientKeyProblem(text, path, clientCertificateFile, readFile(clientCertificateFile))
      : undefined;
  return [
    [`${key}.caFile`, inFile(caFile, pemProblem)],
    [`${key}.clientCertificateFile`, ofCertificate],
    [`${key}.clientKeyFile`, inFile(clientKeyFile, judgeKey)],
  ];
}

function clientCertificateProblem(text: string, path: string): string | undefined {
  const problem = pemProblem(text, path);
  if (problem !== undefined) return problem;
  const expires = new Date(new X509Certificate(text).validTo);
  return expires.getTime() < Date.now()
    ? `the certificate in ${path} expired on ${expires.toISOString()}: give a renewed one and its key`
    : undefined;
}

function clientKeyProblem(
  text: string,
  path: string,
  certificatePath: string,
  certificate: string,
): string | undefined {
  const key = tryDecode((pem) => createPrivateKey(pem), text);
  if (key === undefined)
    return text.includes('ENCRYPTED')
      ? `${path} is encrypted: decrypt it (openssl pkey -in ${path} -out …), and let only this user read it`
      : `${path} has no private key in PEM form (-----BEGIN PRIVATE KEY-----)`;
  if (new X509Certificate(certificate).checkPrivateKey(key)) return undefined;
  return `the key in ${path} does not belong to the certificate in ${certificatePath}: give the key with which it was requested`;
}

/** Runs a check, and returns its problem or the error that it throws; undefined if it passes. */
function failureOf(failed: string, check: () => string | undefined): string | undefined {
  try {
    return check();
  } catch (error) {
    return `${failed}: ${errorText(error)}`;
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Checks access to a file that is read later, because it may be gigabytes long. `remedy`: for a folder. */
export function accessProblem(path: string | undefined, remedy: string): string | undefined {
  return pathProblem(path, (given) => {
    accessSync(given, constants.R_OK);
    return isFolder(given) ? `${given} is a folder: ${remedy}` : undefined;
  });
}

/** Checks the folder, in which temporary files, and change files after log rotation, are created. */
export function folderProblem(path: string | undefined, failed: string): string | undefined {
  if (path === undefined) return undefined;
  const folder = dirname(path);
  const remedy = `create ${folder}, and let this user write there (systemd: StateDirectory=)`;
  return failureOf(`${failed} ${remedy}`, () => {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return isFolder(path) ? `${path} is a folder: give the path of a file` : undefined;
  });
}

/** Checks also the file, which a rename replaces. */
export function replacedFileProblem(path: string | undefined, failed: string): string | undefined {
  const problem = folderProblem(path && fileBehindLink(path), failed);
  if (problem !== undefined || path === undefined || isReplaceable(path)) return problem;
  return `${path} is not a regular file: give the path of a file`;
}

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^]*?-----END [A-Z0-9 ]+-----/g;

/** Reports broken certificates in a CA file. OpenSSL ignores them, and every connection would then fail. */
export function pemProblem(text: string, path: string): string | undefined {
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0)
    return `${path} has no certificate in PEM form (-----BEGIN CERTIFICATE-----)`;
  const broken = certificates.findIndex(
    (pem) => tryDecode((text) => new X509Certificate(text), pem) === undefined,
  );
  return broken < 0 ? undefined : `certificate ${broken + 1} of ${path} is broken`;
}
