// Reads the parameters of a request from its query and from a posted form, and redirects the lookup form.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { handleToPath } from '../handle/handle.js';
import { forbidSniffing } from '../http/raw-response.js';
import { type MemoryBudget, createWithBody } from '../http/request-body.js';
import { parseParameters } from '../http/target.js';
import { readRedirectParameters } from './request.js';

const MAX_FORM_BYTES = 16 * 1024;

const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

const FORM_CODES = { invalid: 'BAD_REQUEST', encoding: 'BAD_REQUEST' } as const;

/**
 * Creates the function that reads all parameters. It ignores the body of a GET, whose response may be cached for
 * other clients, and any `charset`, because forms are always UTF-8 (URL Standard, section 5).
 */
export function createReadAllParameters(bodies: MemoryBudget) {
  const withBody = createWithBody(bodies, MAX_FORM_BYTES);
  return async function readAllParameters(req: IncomingMessage, query: string): Promise<URLSearchParams> {
    const isForm = req.method === 'POST' && FORM.test(req.headers['content-type'] ?? '');
    if (!isForm) return formParameters(query, '');
    const form = await withBody(req, (body) => new TextDecoder().decode(body), FORM_CODES);
    return formParameters(query, form);
  };
}

/** Decodes `+` as a space in posted forms and in `hdl`, and keeps it in other query parameters. */
function formParameters(query: string, form: string): URLSearchParams {
  const parameters = readRedirectParameters(query);
  const handle = parseParameters(query).get('hdl');
  if (handle !== null) parameters.set('hdl', handle);
  for (const [name, value] of parseParameters(form)) parameters.append(name, value);
  return parameters;
}

/** Redirects the form's GET to the handle's own URL, which readers can share. HDLProxy's form posts `hdl=` instead. */
export function redirectToHandle(res: ServerResponse, handle: string, parameters: URLSearchParams): void {
  parameters.delete('hdl');
  const pairs = [...parameters].map((pair) => pair.map(encodeURIComponent).join('='));
  const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Location', `/${handleToPath(handle)}${query}`);
  forbidSniffing(res);
  res.statusCode = 302;
  res.end();
}
