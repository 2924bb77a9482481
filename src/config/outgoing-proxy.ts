// Reads the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY, which name the proxy of outgoing connections.
import { isIP } from 'node:net';
import { createNetworkTest, hasValidLogin, isLoopback, parseHttpUrl, parseUrl } from './addresses.js';
import type { ConfigProblem } from './keys.js';

/** The parts of an address that select its proxy. */
export interface OutgoingAddress {
  /** With a colon, such as `https:`. */
  protocol: string;
  /** IPv6 addresses with or without brackets. */
  hostname: string;
  /** Empty for the default port. */
  port: string;
}

/** Variables by the scheme of the destination. Lower case takes precedence, as in curl. */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  'https:': ['https_proxy', 'HTTPS_PROXY'],
  'http:': ['http_proxy', 'HTTP_PROXY'],
};

/** Returns the variable that counts and its value; undefined if none is set, or the first is empty. */
function givenProxy(
  env: NodeJS.ProcessEnv,
  names: readonly string[],
): { name: string; text: string } | undefined {
  const name = names.find((each) => env[each] !== undefined) ?? '';
  const text = env[name]?.trim() ?? '';
  return text === '' ? undefined : { name, text };
}

/** Returns the proxy for a connection; undefined if it is direct, as every connection to loopback is. */
export function outgoingProxy(to: OutgoingAddress, env: NodeJS.ProcessEnv = process.env): URL | undefined {
  const given = givenProxy(env, VARIABLES[to.protocol] ?? []);
  const host = to.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (given === undefined || isLoopback(host)) return undefined;
  const port = portOf(to);
  const direct = givenProxy(env, ['no_proxy', 'NO_PROXY'])?.text.split(/[\s,]+/) ?? [];
  return direct.some((entry) => isNamed(entry.toLowerCase(), host, port)) ? undefined : parseUrl(given.text);
}

/** Returns the port of an address, also if it is the default of the scheme. */
export const portOf = ({ protocol, port }: OutgoingAddress): string =>
  port === '' ? (protocol === 'https:' ? '443' : '80') : port;

/** Whether an entry of NO_PROXY names a host: `*`, a network, or a name or domain with or without a port. */
function isNamed(entry: string, host: string, port: string): boolean {
  if (entry === '*' || isInNetwork(host, entry)) return true;
  const [, name = entry, only] = isIP(entry) === 6 ? [] : (/^(.+):(\d+)$/.exec(entry) ?? []);
  const domain = name.replace(/^\[|\]$/g, '').replace(/^\*?\./, '');
  if (domain === '' || (only !== undefined && only !== port)) return false;
  return host === domain || host.endsWith(`.${domain}`);
}

/** Whether an address is in a network such as `10.0.0.0/8`, as in Go. */
const isInNetwork = (host: string, entry: string): boolean =>
  isIP(host) !== 0 && entry.includes('/') && createNetworkTest([entry])(host);

const ALLOWED = 'give an http:// or https:// address without a path, such as http://proxy.example.org:3128';

const givenProxies = (env: NodeJS.ProcessEnv) =>
  Object.values(VARIABLES).flatMap((names) => givenProxy(env, names) ?? []);

/** Returns the variables with an unusable address. Their values are not shown, because they may contain a password. */
export const outgoingProxyProblems = (env: NodeJS.ProcessEnv): ConfigProblem[] =>
  givenProxies(env)
    .filter(({ text }) => !isProxyUrl(text))
    .map(({ name }) => ({ source: `variable ${name}`, text: `(hidden) is not allowed; ${ALLOWED}` }));

function isProxyUrl(text: string): boolean {
  const url = parseHttpUrl(text);
  return url !== undefined && url.pathname + url.search + url.hash === '/' && hasValidLogin(url);
}

/** Returns the variables and the addresses of the proxies, without user and password. */
export const describeOutgoingProxies = (): Record<string, string> =>
  Object.fromEntries(
    givenProxies(process.env).flatMap(({ name, text }) => {
      const url = parseUrl(text);
      return url ? [[name, url.origin]] : [];
    }),
  );
