// OPTIONS of ePIC v2: what a resource can do, and which headers scripts of other origins may send.
import type { Request, Response } from 'express';
import { answerPreflight, isPreflight } from '../http/cors.js';
import { send } from './send.js';

/** What conditional writes and lists need, beside what every request may carry. */
const HEADERS = [
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Depth',
  'Idempotency-Key',
];

export function answerV2Options(req: Request, res: Response, allow: string): void {
  if (isPreflight(req)) answerPreflight(req, res, HEADERS);
  else send(res, { status: 204, headers: { Allow: allow } });
}
