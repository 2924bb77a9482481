// Whether a rule matches a request. Compiled once: networks and patterns are not parsed for each request.
import { BlockList, isIPv6 } from 'node:net';
import { upperAscii } from '../handle/handle.js';
import type { TrafficRule } from '../config/schema-traffic.js';
import type { RequestFacts } from './rule.js';

export type Matches = (facts: RequestFacts) => boolean;

/** The cheapest parts come first. */
export function compileMatch(match: TrafficRule['match']): Matches {
  const parts = [
    match.reads && ((facts: RequestFacts) => facts.reads === match.reads),
    match.method && oneOf(match.method, ({ method }) => method),
    match.interface && oneOf(match.interface, (facts) => facts.interface),
    match.credentials !== undefined &&
      ((facts: RequestFacts) => (facts.credentials !== undefined) === match.credentials),
    match.prefix && matchPrefix(match.prefix),
    match.handle && matchText(match.handle, ({ handle }) => handle),
    match.userAgent && matchText(match.userAgent, ({ userAgent }) => userAgent),
    match.network && matchNetwork(match.network),
  ].filter((part) => typeof part === 'function');
  return (facts) => parts.every((part) => part(facts));
}

function oneOf(allowed: readonly string[], read: (facts: RequestFacts) => string): Matches {
  const set = new Set(allowed);
  return (facts) => set.has(read(facts));
}

function matchNetwork(networks: readonly string[]): Matches {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return ({ address }) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** `21.T1`, or `21.T1.*` for the prefixes derived from it. */
function matchPrefix(prefixes: readonly string[]): Matches {
  const folded = prefixes.map(upperAscii);
  const isOf = (prefix: string, pattern: string): boolean =>
    pattern.endsWith('.*') ? prefix.startsWith(pattern.slice(0, -1)) : prefix === pattern;
  return ({ handle }) => {
    const slash = handle?.indexOf('/') ?? -1;
    if (handle === undefined || slash === -1) return false;
    const prefix = upperAscii(handle.slice(0, slash));
    return folded.some((pattern) => isOf(prefix, pattern));
  };
}

function matchText(patterns: readonly string[], read: (facts: RequestFacts) => string | undefined): Matches {
  const compiled = patterns.map(compileGlob);
  return (facts) => {
    const text = read(facts);
    if (text === undefined) return false;
    const folded = upperAscii(text);
    return compiled.some((isMatch) => isMatch(folded));
  };
}

/** `*` stands for any text. Not a regular expression: one with several `.*` takes quadratic time on a long text. */
function compileGlob(pattern: string): (folded: string) => boolean {
  const [first = '', ...others] = upperAscii(pattern).split('*');
  const last = others.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const part of others) {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}
