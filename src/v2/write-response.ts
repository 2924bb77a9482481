// The response to a successful PUT or POST: 201 with Location, or 204, with the ETag of the stored record.
import type { Request } from 'express';
import { handleToPath } from '../handle/handle.js';
import { writeJson } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import { recordEtag, validatorHeaders, validatorsOf } from './conditions.js';
import type { V2Call, V2Deps, V2Settings } from './deps.js';
import { readAsCaller } from './read.js';
import { JSON_TYPE, PRIVATE, send } from './response.js';

export interface WrittenRecord {
  handle: string;
  /** The client's spelling, unless the name was minted. */
  rawHandle?: string;
  isNew: boolean;
  /** The values that were sent, for when they cannot be read back. */
  values: readonly HandleValue[];
  /** False when the handle is not locked: others may have changed it since the write. */
  isLocked?: boolean;
}

export async function sendWritten(
  { records, settings, run }: Pick<V2Deps, 'records' | 'settings' | 'run'>,
  { req, res, login }: V2Call,
  written: WrittenRecord,
): Promise<void> {
  const { handle, isNew, values, isLocked = true } = written;
  // The server adds timestamps and may rewrite values: the ETag is that of the stored record.
  const read = await readAsCaller(records, login, { handle, authoritative: true }).catch(() => undefined);
  // Never the ETag of another client's write (RFC 9110 §9.3.4).
  const stored = read && (await run(validatorsOf(read.values), Infinity));
  const isOwn = isLocked || stored?.etag === (await run(recordEtag(values), Infinity));
  const validators = isOwn && stored !== undefined ? stored : await run(validatorsOf(values), Infinity);
  const headers = { ...PRIVATE, ...validatorHeaders(validators) };
  if (!isNew) {
    send(res, { status: 204, headers });
    return;
  }
  send(res, {
    status: 201,
    headers: { ...headers, Location: locationOf(req, settings, written) },
    contentType: JSON_TYPE,
    body: writeJson({ 'epic-pid': handle }),
  });
}

/** The URL of a handle, under the URL that the client used or under `v2.publicUrl`. */
function locationOf(
  req: Request,
  { publicUrl }: Pick<V2Settings, 'publicUrl'>,
  { handle, rawHandle }: Pick<WrittenRecord, 'handle' | 'rawHandle'>,
): string {
  const isClean = rawHandle !== undefined && /^[\x21-\x7e]+$/.test(rawHandle);
  // A trailing slash would be ignored as the tolerated one.
  const path = isClean ? rawHandle : handleToPath(handle).replace(/\/$/, '%2F');
  return `${publicUrl ?? baseUrlOf(req)}/api/v2/handles/${path}`;
}

/** Express reads `X-Forwarded-Proto` and `-Host` of proxies in `http.trustedProxies`. */
function baseUrlOf(req: Request): string {
  const host = isHost(req.host) ? req.host : addressOf(req);
  return `${req.protocol}://${host}${forwardedPrefix(req)}`;
}

/** Undefined for an HTTP/1.0 client without Host, against Express' types. */
const isHost = (host: string | undefined): boolean =>
  host !== undefined && /^(\[[\da-f:.]+\]|[\w.-]+)(:\d+)?$/i.test(host);

function addressOf({ socket }: Request): string {
  const { localAddress = 'localhost', localPort = 0 } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** The path that a trusted proxy removed, in a header that Express does not read. */
function forwardedPrefix(req: Request): string {
  const trusts = req.app.get('trust proxy fn') as (address: string | undefined, hop: number) => boolean;
  const [prefix = ''] = (req.get('x-forwarded-prefix') ?? '').split(',');
  const isPath = /^(\/[\w.~-]+)+\/?$/.test(prefix.trim());
  return isPath && trusts(req.socket.remoteAddress, 0) ? prefix.trim().replace(/\/$/, '') : '';
}
