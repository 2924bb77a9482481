// The id of a request: in its log line, in its error response, and in the log of the web server in front.
import type { IncomingMessage } from 'node:http';

/** The field in a request of a trusted proxy, in a forwarded request, and in an error response. */
export const REQUEST_ID = 'X-Request-Id';

/** As web servers write them: UUIDs, hex digits, Base64, address and counter. Safe in a log line, a header and a page. */
const FORMAT = /^[\w.:=+/@-]{1,128}$/;

/** The id that the request came with; undefined unless it is valid and from a trusted proxy. */
export type AcceptRequestId = (given: string | undefined, req: IncomingMessage) => string | undefined;

export const createAcceptRequestId =
  (isTrustedProxy: (address: string) => boolean): AcceptRequestId =>
  (given, { socket }) =>
    given !== undefined && isTrustedProxy(socket.remoteAddress ?? '') && FORMAT.test(given)
      ? given
      : undefined;
