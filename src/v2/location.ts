// Where a new handle is found: under the address the client itself used.
import type { Request } from 'express';
import { handleToPath } from '../handle/handle.js';
import type { V2Settings } from './deps.js';

/** The absolute address of a handle; `rawHandle` is how the client wrote it, where it did. */
export function locationOf(
  req: Request,
  { publicUrl }: Pick<V2Settings, 'publicUrl'>,
  { handle, rawHandle }: { handle: string; rawHandle?: string },
): string {
  const isClean = rawHandle !== undefined && /^[\x21-\x7e]+$/.test(rawHandle);
  return `${publicUrl ?? baseOf(req)}/api/v2/handles/${isClean ? rawHandle : handleToV2Path(handle)}`;
}

/** A slash at the end would be taken for the one that is tolerated. */
const handleToV2Path = (handle: string): string => handleToPath(handle).replace(/\/$/, '%2F');

/** Express reads `X-Forwarded-Proto` and `-Host` where the proxy is one of `http.trustedProxies`. */
function baseOf(req: Request): string {
  const host = isHost(req.host) ? req.host : addressOf(req);
  return `${req.protocol}://${host}${forwardedPrefix(req)}`;
}

/** Express types it as always there; an HTTP/1.0 client may leave it out. */
const isHost = (host: string | undefined): boolean =>
  host !== undefined && /^(\[[\da-f:.]+\]|[\w.-]+)(:\d+)?$/i.test(host);

function addressOf({ socket }: Request): string {
  const { localAddress = 'localhost', localPort = 0 } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** The part of the path that a trusted proxy took away; Express does not know this header. */
function forwardedPrefix(req: Request): string {
  const trusts = req.app.get('trust proxy fn') as (address: string | undefined, hop: number) => boolean;
  const [prefix = ''] = (req.get('x-forwarded-prefix') ?? '').split(',');
  const isPath = /^(\/[\w.~-]+)+\/?$/.test(prefix.trim());
  return isPath && trusts(req.socket.remoteAddress, 0) ? prefix.trim().replace(/\/$/, '') : '';
}
