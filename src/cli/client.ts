// Sends the commands' HTTP requests to a running proxy and its admin listener.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { json, text } from 'node:stream/consumers';
import { EXIT, Failure } from './terminal.js';

export interface AdminOptions {
  /** Base URL of the admin listener. */
  admin: string;
}

/** Calls the admin listener and returns the JSON response. @throws Failure as `callAdmin` does */
export async function askAdmin(options: AdminOptions, path: string, body?: object): Promise<unknown> {
  return json(await callAdmin(options, path, body && { body: JSON.stringify(body) }));
}

/**
 * Sends a POST if `body` is given, otherwise a GET, unless `method` is given. The caller reads the response to its end.
 * Uses node:http, because fetch does not expose trailers.
 *
 * @throws Failure for a non-2xx or missing response
 */
export async function callAdmin(
  { admin }: AdminOptions,
  path: string,
  { body, method = body === undefined ? 'GET' : 'POST' }: { body?: string; method?: string } = {},
): Promise<IncomingMessage> {
  const url = `${admin}${path}`;
  const { request } = url.startsWith('https:') ? https : http;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method, headers: adminHeaders() }, resolve);
    sent.once('error', (error) => {
      reject(unreachable(url, error));
    });
    sent.end(body);
  });
  const { statusCode = 0 } = response;
  if (statusCode >= 200 && statusCode < 300) return response;
  throw refusalText(path, statusCode, await text(response));
}

const adminToken = (): string => process.env['ADMIN_TOKEN'] ?? '';

const adminHeaders = (): Record<string, string> => ({
  'Content-Type': 'application/json',
  ...(adminToken() !== '' && { Authorization: `Bearer ${adminToken()}` }),
});

function refusalText(path: string, status: number, body: string): Failure {
  if (status === 401) return adminToken() === '' ? TOKEN_MISSING : TOKEN_WRONG;
  return new Failure(`${path}: status ${status}: ${reasonIn(body)}`);
}

/** Formats problem JSON (RFC 9457) as title, detail and code; returns any other body unchanged. */
function reasonIn(body: string): string {
  try {
    const { title, detail, code } = JSON.parse(body) as { title?: string; detail?: string; code?: string };
    if (title === undefined || code === undefined) return body;
    return `${[title, detail].filter((part) => part !== undefined).join(': ')} (${code})`;
  } catch {
    return body;
  }
}

const TOKEN_MISSING = new Failure(
  'The admin listener needs a token: set ADMIN_TOKEN to the value of admin.token.',
  EXIT.usage,
);
const TOKEN_WRONG = new Failure('The admin listener does not accept the token in ADMIN_TOKEN.');

/** @throws Failure with the address and the reason if no response arrives */
export async function fetchOrFail(url: string, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw unreachable(url, error);
  }
}

const unreachable = (url: string, error: unknown): Failure =>
  new Failure(`cannot reach ${url}: ${failureReason(error)}`);

/** Returns the innermost cause's message, because `fetch` itself reports only "fetch failed". */
export function failureReason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return failureReason(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : failureReason(error.cause);
}
