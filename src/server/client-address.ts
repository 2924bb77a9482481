// Whose request it is: the address of the client, behind proxies that are trusted.
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import express, { type Request } from 'express';

/** Whether a proxy at this address is believed. */
export type Trusts = (address: string, hop: number) => boolean;

/** Reads `http.trustedProxies` the way Express does. */
export function createTrust(trustedProxies: readonly string[]): Trusts {
  const app = express();
  app.set('trust proxy', trustedProxies);
  return app.get('trust proxy fn') as Trusts;
}

/** The other end of the client's connection, and whether what it says about others is believed. */
export function peerOf({ app, socket }: Request): { address: string; isTrusted: boolean } {
  const { remoteAddress } = socket;
  const trusts = app.get('trust proxy fn') as Trusts;
  // RFC 7239 §6.2: a client that has left has no address any more.
  if (remoteAddress === undefined) return { address: 'unknown', isTrusted: false };
  return { address: remoteAddress, isTrusted: trusts(remoteAddress, 0) };
}

/** The nearest address that no trusted proxy vouches for: what stands further left anybody can write. */
export function clientAddress({ socket, headers }: IncomingMessage, trusts: Trusts): string {
  const forwarded = headers['x-forwarded-for']?.toString().split(',') ?? [];
  const nearestFirst = [socket.remoteAddress ?? '', ...forwarded.map(withoutPort).reverse()];
  const found = nearestFirst.find((address, hop) => !trusts(address, hop));
  return found ?? nearestFirst.at(-1) ?? '';
}

/** Some proxies tell the port too, as in RFC 7239 §6: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const address = text.trim();
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}

/** Everybody with IPv6 has a network of addresses; what is counted is the network (/56). */
export function networkOf(address: string): string {
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (v4 !== undefined || !isIPv6(address)) return v4 ?? address;
  const [head = '', tail = ''] = address.split('::', 2);
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(Math.max(0, missing)).fill('0'), ...groups(tail)];
  const [a, b, c, d = 0] = all.map((group) => parseInt(group, 16));
  return `${[a, b, c, d & 0xff00].map((group) => (group ?? 0).toString(16)).join(':')}::/56`;
}
