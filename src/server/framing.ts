// What Node's parser lets pass in the head of a request, and another server in front of this one may read in another way.
import type { IncomingMessage } from 'node:http';

interface Framing {
  /** Why the request is refused and its connection closed; undefined for one that every server reads alike. */
  problem: string | undefined;
  /** No other protocol is offered, so `Upgrade` is ignored (RFC 9110 §7.8). */
  asksForUpgrade: boolean;
}

const HOST = 'host';
const UPGRADE = 'upgrade';
const TRANSFER_ENCODING = 'transfer-encoding';

/** `uri-host [":" port]` (RFC 9112 §3.2), and empty, as for a target without authority. */
const HOST_AND_PORT =
  /^(?:\[(?:[\da-f:.]+|v[\da-f]+\.[\w.~!$&'()*+,;=:-]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/** These serve all calls: a hit is read here too, and creates nothing. */
const found: Framing = { problem: undefined, asksForUpgrade: false };
const seen = { hosts: 0, host: '', codings: 0, coding: '' };
/** Clients repeat it with each request. */
let knownHost = '';

/** One object serves all calls. */
export function readFraming(
  req: Pick<IncomingMessage, 'rawHeaders' | 'httpVersionMajor' | 'httpVersionMinor'>,
): Framing {
  const { rawHeaders } = req;
  seen.hosts = 0;
  seen.codings = 0;
  found.asksForUpgrade = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const { length } = name;
    if (length === HOST.length || length === UPGRADE.length || length === TRANSFER_ENCODING.length) {
      note(name.toLowerCase(), rawHeaders[at + 1] as string);
    }
  }
  found.problem = problemOf(req);
  return found;
}

function note(name: string, value: string): void {
  if (name === HOST) {
    seen.hosts++;
    seen.host = value;
  } else if (name === TRANSFER_ENCODING) {
    seen.codings++;
    seen.coding = value;
  } else if (name === UPGRADE) {
    found.asksForUpgrade = true;
  }
}

function problemOf({
  httpVersionMajor,
  httpVersionMinor,
}: Pick<IncomingMessage, 'httpVersionMajor' | 'httpVersionMinor'>): string | undefined {
  // 0.9 has no status and no end (RFC 9112 §3), and 2.0 is not written in lines.
  if (httpVersionMajor !== 1) return 'only HTTP/1.1 and HTTP/1.0 are read';
  if (seen.codings > 0) {
    // A server of that time sees no body here (RFC 9112 §6.1).
    if (httpVersionMinor === 0) return 'HTTP/1.0 has no Transfer-Encoding';
    // No coding is undone here, and one in front of chunked hides the body from others (RFC 9112 §6.1, §6.3).
    if (seen.codings > 1 || seen.coding.toLowerCase() !== 'chunked') {
      return 'Transfer-Encoding has to be chunked, once';
    }
  }
  // None is answered: old clients send none (RFC 9112 §3.2).
  if (seen.hosts > 1) return 'there are several Host lines';
  return seen.hosts === 0 || isHost(seen.host) ? undefined : 'Host is no host';
}

function isHost(host: string): boolean {
  if (host === knownHost) return true;
  if (!HOST_AND_PORT.test(host)) return false;
  knownHost = host;
  return true;
}
