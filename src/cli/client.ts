// HTTP requests of the commands to a running proxy and its admin listener.
import { EXIT, Failure } from './terminal.js';

export interface AdminOptions {
  /** Address of the admin listener. */
  admin: string;
}

/** The JSON that the admin listener responds with. @throws Failure as below */
export async function askAdmin(options: AdminOptions, path: string, body?: object): Promise<unknown> {
  return (await callAdmin(options, path, body && { body: JSON.stringify(body) })).json();
}

/** POST where there is a body. @throws Failure when the admin listener does not respond with 2xx */
export async function callAdmin(
  { admin }: AdminOptions,
  path: string,
  { body, method }: { body?: string; method?: 'DELETE' } = {},
): Promise<Response> {
  const { ADMIN_TOKEN: token = '' } = process.env;
  const response = await fetchOrFail(`${admin}${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      'Content-Type': 'application/json',
      ...(token !== '' && { Authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body }),
  });
  if (response.status === 401) throw token === '' ? TOKEN_MISSING : TOKEN_WRONG;
  if (!response.ok) throw new Failure(`${path}: status ${response.status}: ${await reasonIn(response)}`);
  return response;
}

/** Of problem JSON (RFC 9457) the title and the detail; any other body as it is. */
async function reasonIn(response: Response): Promise<string> {
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('application/problem+json')) return text;
  const { title, detail, code } = JSON.parse(text) as { title: string; detail?: string; code: string };
  return `${[title, detail].filter((part) => part !== undefined).join(': ')} (${code})`;
}

const TOKEN_MISSING = new Failure(
  'The admin listener needs a token: set ADMIN_TOKEN to the value of admin.token.',
  EXIT.usage,
);
const TOKEN_WRONG = new Failure('The admin listener does not accept the token in ADMIN_TOKEN.');

/** @throws Failure with the address and the reason when there is no response */
export async function fetchOrFail(url: string, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw new Failure(`cannot reach ${url}: ${reasonOf(error)}`);
  }
}

/** The innermost cause: `fetch` itself reports only "fetch failed". */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : reasonOf(error.cause);
}
