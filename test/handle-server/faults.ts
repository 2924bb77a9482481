// Faults on demand: how the demo server misbehaves when a test or a visitor asks it to.
import type { ServerResponse } from 'node:http';
import { writeJson } from '../../src/handle/json.js';
import type { WireReply } from './respond.js';

/**
 * What can be wrong: `refuse` 503 too busy · `error` 500 code 2 · `html` a page with status 200 ·
 * `garbage` broken JSON · `hang` no answer ever · `reset` connection reset · `cut` the body ends
 * half-way · `stall` the body stops half-way, the connection stays · `wrong-handle` somebody else's record.
 */
export const FAULT_KINDS = [
  'refuse',
  'error',
  'html',
  'garbage',
  'hang',
  'reset',
  'cut',
  'stall',
  'wrong-handle',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

const JSON_TYPE = 'application/json;charset=utf-8';

function replacement(status: number, contentType: string, text: string): WireReply {
  const body = Buffer.from(text);
  return {
    status,
    headers: [
      ['Content-Type', contentType],
      ['Content-Length', String(body.length)],
    ],
    body,
  };
}

const REPLACED: Partial<Record<FaultKind, WireReply>> = {
  refuse: replacement(503, JSON_TYPE, '{"responseCode":3,"message":"Server too busy"}'),
  error: replacement(500, JSON_TYPE, '{"responseCode":2,"message":"Internal Error"}'),
  html: replacement(
    200,
    'text/html;charset=utf-8',
    '<!DOCTYPE html><title>Gateway</title><h1>Please log in</h1>',
  ),
  garbage: replacement(200, JSON_TYPE, '{"responseCode":1,"handle":"21.T11998/'),
  'wrong-handle': replacement(
    200,
    JSON_TYPE,
    writeJson({
      responseCode: 1,
      handle: '21.T11998/somebody-else',
      values: [
        { index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/else' }, ttl: 86400 },
      ],
    }),
  ),
};

/** Sends a reply, or what the fault makes of it. */
export function send(response: ServerResponse, reply: WireReply, fault?: FaultKind): void {
  if (fault === 'hang') return;
  if (fault === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  const { status, headers, body } = (fault && REPLACED[fault]) ?? reply;
  response.writeHead(status, headers.flat());
  if (fault === 'cut' || fault === 'stall') {
    response.write(body.subarray(0, body.length / 2), () => {
      if (fault === 'cut') response.destroy();
    });
    return;
  }
  response.end(body);
}
