// A failure of the upstream on its way from one worker to another.
import { ServiceError } from '../../errors.js';
import type { PeerFailure } from './messages.js';

/** The cause stays behind: it is for the log of the process it came up in. */
export function packFailure({ code, message, retryAfterSeconds, upstreamAnswer }: ServiceError): PeerFailure {
  return {
    code,
    message,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(upstreamAnswer && { upstreamAnswer }),
  };
}

export function unpackFailure({
  code,
  message,
  retryAfterSeconds,
  upstreamAnswer,
}: PeerFailure): ServiceError {
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
  return new ServiceError(code, { message, retryAfterMs, ...(upstreamAnswer && { upstreamAnswer }) });
}
