// Finds request heads that Node's parser accepts and a server in front of this one may read differently.
import type { IncomingMessage } from 'node:http';

interface Framing {
  /** Why the request is refused and its connection closed; undefined if every server reads the head alike. */
  problem: string | undefined;
  /** Whether it has `Upgrade`, which is ignored, because no other protocol is offered (RFC 9110 §7.8). */
  asksForUpgrade: boolean;
}

const HOST = 'host';
const UPGRADE = 'upgrade';
const TRANSFER_ENCODING = 'transfer-encoding';

/** `uri-host [":" port]` (RFC 9112 §3.2), or empty, for a target without authority. */
const HOST_AND_PORT =
  /^(?:\[(?:[\da-f:.]+|v[\da-f]+\.[\w.~!$&'()*+,;=:-]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/** Shared by all calls, so that a hit allocates nothing here. */
const found: Framing = { problem: undefined, asksForUpgrade: false };
const seen = { hosts: 0, host: '', codings: 0, coding: '' };
/** The last valid host, because clients repeat it with each request. */
let knownHost = '';

/** Returns an object that the next call overwrites. */
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
  // HTTP/0.9 has no status line and no framing (RFC 9112 §3), and HTTP/2 is not a text protocol.
  if (httpVersionMajor !== 1) return 'only HTTP/1.1 and HTTP/1.0 are read';
  if (seen.codings > 0) {
    // An HTTP/1.0 server sees no body here (RFC 9112 §6.1).
    if (httpVersionMinor === 0) return 'HTTP/1.0 has no Transfer-Encoding';
    // No coding is decoded here, and a coding before chunked hides the body from other servers (RFC 9112 §6.1, §6.3).
    if (seen.codings > 1 || seen.coding.toLowerCase() !== 'chunked') {
      return 'Transfer-Encoding has to be chunked, once';
    }
  }
  // A request without Host is answered, because old clients send none (RFC 9112 §3.2).
  if (seen.hosts > 1) return 'there are several Host lines';
  return seen.hosts === 0 || isHost(seen.host) ? undefined : 'Host is no host';
}

function isHost(host: string): boolean {
  if (host === knownHost) return true;
  if (!HOST_AND_PORT.test(host)) return false;
  knownHost = host;
  return true;
}
