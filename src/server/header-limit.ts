// A limit for the number of header fields. Beyond its own Node leaves fields out, and obeys those that it left out.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { JSON_TYPE, bodyOfMembers } from '../http/body.js';

const MAX_FIELDS = 1000;

/** Names and values by turns. */
const MAX_RAW = 2 * MAX_FIELDS;

/** Node keeps one field more than is served: that there are too many is seen by the length of the list. */
export function limitHeaderFields(server: Server): void {
  server.maxHeadersCount = MAX_FIELDS + 1;
}

/** True when the request was refused. Its connection is closed: whatever follows on it is not read. */
export function refuseHeaderFlood({ rawHeaders }: IncomingMessage, res: ServerResponse): boolean {
  if (rawHeaders.length <= MAX_RAW) return false;
  const detail = `at most ${MAX_FIELDS} fields are read`;
  const { status, responseCode, message } = new ServiceError('HEADERS_TOO_LARGE', { detail });
  const json = bodyOfMembers({ responseCode, message }, undefined);
  const headers = { 'Content-Type': JSON_TYPE, 'Content-Length': Buffer.byteLength(json) };
  res.writeHead(status, { ...headers, 'Cache-Control': 'no-store', Connection: 'close' }).end(json);
  return true;
}
