// The handles a command works through: from a file, from standard input, or those of a prefix.
import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { reach } from './call.js';
import { authorizationFor } from './credentials.js';
import { EXIT, Failure } from './exit.js';
import { printable } from './printable.js';

export interface ListSource {
  proxy: string;
  prefix?: string;
  pageSize: number;
  user?: string;
  passwordFile?: string;
}

/** Each handle once. */
export async function listHandles(file: string | undefined, source: ListSource): Promise<string[]> {
  const { prefix } = source;
  if ((file === undefined) === (prefix === undefined))
    throw new Failure('Give a file (- for standard input) or --prefix, and only one of them.', EXIT.usage);
  const handles = file === undefined ? handlesOf(prefix ?? '', source) : linesOf(file);
  const all = new Set<string>();
  for await (const handle of handles) all.add(handle);
  return [...all];
}

/** Those of a file, `-` for standard input. */
export async function readHandles(file: string): Promise<string[]> {
  const handles: string[] = [];
  for await (const handle of linesOf(file)) handles.push(handle);
  return handles;
}

async function* linesOf(file: string): AsyncGenerator<string> {
  if (file !== '-' && !existsSync(file)) throw new Failure(`${file} cannot be read`, EXIT.usage);
  const input = file === '-' ? process.stdin : createReadStream(file);
  for await (const line of createInterface({ input })) if (line.trim() !== '') yield line.trim();
}

interface Page {
  totalCount?: unknown;
  handles?: unknown;
  message?: unknown;
}

/** Page after page, until one is not full; a server that knows no pages gives everything at once. */
async function* handlesOf(prefix: string, source: ListSource): AsyncGenerator<string> {
  const authorization = authorizationFor(source);
  for (let page = 0, listed = 0; ; page++) {
    const { handles, totalCount } = await fetchPage({ ...source, prefix, page, authorization });
    yield* handles;
    listed += handles.length;
    process.stderr.write(`${listed} of ${printable(String(totalCount))} handles listed\n`);
    if (handles.length !== source.pageSize) return;
  }
}

interface PageAsked extends ListSource {
  prefix: string;
  page: number;
  authorization: string | undefined;
}

async function fetchPage({ proxy, prefix, page, pageSize, authorization }: PageAsked) {
  const query = new URLSearchParams({ prefix, page: String(page), pageSize: String(pageSize) });
  const answer = await reach(`${proxy}/api/handles?${query.toString()}`, {
    headers: authorization === undefined ? {} : { Authorization: authorization },
    // Credentials go where they were meant to go, and nowhere else.
    redirect: 'error',
  });
  const body = await bodyOf(answer);
  const { handles, totalCount } = body;
  if (!answer.ok || !isList(handles)) throw new Failure(refusal(answer.status, body));
  return { handles, totalCount };
}

const bodyOf = async (answer: Response): Promise<Page> =>
  ((await answer.json().catch(() => undefined)) as Page | null | undefined) ?? {};

const isList = (handles: unknown): handles is string[] =>
  Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');

/** What helps, for the answers a Handle server gives to those who may not list. */
const HINTS: Partial<Record<number, string>> = {
  401: 'give --user (or HANDLE_USER) and its password in HANDLE_PASSWORD or --password-file',
  403: 'the user needs the right list_handles in an HS_ADMIN of the prefix, and upstream.url has to be https',
  501: 'listing is turned off in the Handle server (allow_list_hdls)',
};

function refusal(status: number, { message }: Page): string {
  const said = typeof message === 'string' ? ` ${printable(message)}` : '';
  const hint = HINTS[status];
  return `the prefix cannot be listed: ${status}${said}${hint === undefined ? '' : `; ${hint}`}`;
}
