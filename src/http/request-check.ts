// The check that each request of the public listener passes before its interface sees it.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import type { FastHeaders } from './fast-headers.js';

/** Checks a request to any interface. Returns the error that rejects it; undefined if it is accepted. */
export type RequestCheck = (
  req: IncomingMessage,
  target: string,
  headers: Pick<FastHeaders, 'isLoop'>,
) => ServiceError | undefined;

interface RequestCheckDeps {
  maxRequestLineBytes: number;
  /** Returns the error with which a judge has rejected the request, if any. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
}

/** Creates the request check of the read path and the pipeline. */
export function createRequestCheck({ maxRequestLineBytes, refusalOf }: RequestCheckDeps): RequestCheck {
  return function checkRequest(req, target, { isLoop }) {
    if ((req.method ?? '').length + target.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      const detail = `at most ${maxRequestLineBytes} bytes are read`;
      return new ServiceError('REQUEST_LINE_TOO_LONG', { detail });
    }
    // `Via` contains the name of this proxy: the upstream address leads back here (RFC 9110 §7.6.3).
    if (isLoop) return new ServiceError('LOOP_DETECTED');
    return refusalOf(req);
  };
}
