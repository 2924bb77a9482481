// Sends batches and parses their elements.
import type { Asked, Question } from './ask.js';
import type { Proxy } from './proxy.js';
import { type Answer, notFound, recordOf, urlValue } from './upstream.js';

export interface BatchElement {
  handle: string;
  status: number;
  stale?: string;
  body: { responseCode: number; handle?: string; values?: { index: number; type: string }[] };
}

export const batchTarget = (handles: readonly string[], more = ''): string =>
  `/api/handles?${handles.map((handle) => `handle=${encodeURIComponent(handle)}`).join('&')}${more}`;

/** Sends POST /api/resolve with this body. */
export const postBatch = (proxy: Proxy, body: unknown, question: Question = {}): Promise<Asked> =>
  proxy.ask('/api/resolve', { method: 'POST', body: JSON.stringify(body), ...question });

export const elementsOf = ({ text }: Asked): BatchElement[] => JSON.parse(text) as BatchElement[];

/** Returns `count` different handles. */
export const numbered = (count: number, prefix = '21.T1'): string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}/${at}`);

export const handleOfTarget = (target: string): string =>
  decodeURIComponent(target.replace(/^\/api\/handles\//, '').replace(/\?.*$/, ''));

/** Responds with a record that names the handle, or with "not found" if the name contains `none`. */
export function answerByHandle(target: string): Answer {
  const handle = handleOfTarget(target);
  return handle.includes('none')
    ? notFound(handle)
    : recordOf([urlValue(`https://example.org/${handle}`)], handle);
}
