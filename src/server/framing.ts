// Rejects request heads that Node's parser accepts, but a front server may interpret differently.
import type { IncomingMessage } from 'node:http';

interface Framing {
  /** Reason to reject the request and close its connection; undefined for an unambiguous head. */
  problem: string | undefined;
  /**
   * Whether the head has `Upgrade`, which is ignored because the server offers no
   * other protocol (RFC 9110 §7.8).
   */
  asksForUpgrade: boolean;
}

const HOST = 'host';
const UPGRADE = 'upgrade';
const TRANSFER_ENCODING = 'transfer-encoding';

/** Matches `uri-host [":" port]` (RFC 9112 §3.2), or an empty value for a target without authority. */
const HOST_AND_PORT =
  /^(?:\[(?:[\da-f:.]+|v[\da-f]+\.[\w.~!$&'()*+,;=:-]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/** Reused by all calls, so that a hit allocates nothing. */
const found: Framing = { problem: undefined, asksForUpgrade: false };
const seen = { hosts: 0, host: '', codings: 0, coding: '' };
/** Last valid host, cached because clients repeat it in every request. */
let knownHost = '';

/** Parses the framing of a request. Returns an object that the next call overwrites. */
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
  // HTTP/0.9 has neither status line nor framing (RFC 9112 §3); HTTP/2 is a binary protocol.
  if (httpVersionMajor !== 1) return 'only HTTP/1.1 and HTTP/1.0 are supported';
  if (seen.codings > 0) {
    // HTTP/1.0 does not define this header, so the framing is ambiguous (RFC 9112 §6.1).
    if (httpVersionMinor === 0) return 'Transfer-Encoding is not allowed in HTTP/1.0';
    // Codings other than chunked are not decoded, and a coding before chunked hides the body from
    // other servers (RFC 9112 §6.1, §6.3).
    if (seen.codings > 1 || seen.coding.toLowerCase() !== 'chunked') {
      return 'the only supported Transfer-Encoding is chunked';
    }
  }
  // Accepts a missing Host, because old clients send none (RFC 9112 §3.2).
  if (seen.hosts > 1) return 'several Host headers';
  return seen.hosts === 0 || isHost(seen.host) ? undefined : 'invalid Host header';
}

function isHost(host: string): boolean {
  if (host === knownHost) return true;
  if (!HOST_AND_PORT.test(host)) return false;
  knownHost = host;
  return true;
}
