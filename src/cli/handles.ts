// Reads the commands' handles from an argument, a file, standard input or a prefix listing.
import { createReadStream, readFileSync } from 'node:fs';
import { basicLogin, isLoopback } from '../config/addresses.js';
import { tryDecode } from '../handle/bytes.js';
import { handleInUrl, parseHandle, printableText } from '../handle/handle.js';
import { streamLines } from '../handle/streams.js';
import { failureReason, fetchText } from './client.js';
import { EXIT, Failure, printNote } from './terminal.js';

/** API path in a resolver URL. No handle starts like this, because `api` is not a prefix. */
const API_PATH = /^api\/handles\//i;

/** Reads a bare handle, a URI (`hdl:…`) or a resolver URL, which alone is percent-encoded and has a query. */
export function readHandleName(text: string): string {
  const name = handleInUrl(text);
  if (!/^\s*https?:/i.test(text)) return name;
  const [path = ''] = name.replace(API_PATH, '').split(/[?#]/, 1);
  const parsed = parseHandle(Buffer.from(path).toString('latin1'));
  return parsed.ok ? parsed.handle : path;
}

/** Yields handles from a file of any length, one per line, without comments (`# …`); `-` is standard input. @throws Failure */
export async function* readHandleLines(file: string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin : createReadStream(file);
  try {
    for await (const line of streamLines(input)) {
      const handle = readHandleName(line);
      if (handle !== '' && !handle.startsWith('#')) yield handle;
    }
  } catch (error) {
    throw new Failure(`cannot read ${file}: ${failureReason(error)}`, EXIT.usage);
  }
}

export interface ListSource {
  proxy: string;
  prefix?: string;
  pageSize: number;
  /** Identity at the Handle server, for example `300:21.T1/USER`. */
  user?: string;
  passwordFile?: string;
}

/** Returns unique handles from a file (`-` is standard input), or those listed under `source.prefix`. */
export async function handlesUnderPrefix(file: string | undefined, source: ListSource): Promise<string[]> {
  const { prefix } = source;
  if ((file === undefined) === (prefix === undefined))
    throw new Failure('Give either a file (- for standard input) or --prefix.', EXIT.usage);
  const unique = new Set<string>();
  if (file === undefined) await listPrefix(prefix ?? '', source, unique);
  else for await (const handle of readHandleLines(file)) unique.add(handle);
  return [...unique];
}

/** Requests pages up to the first that is partial or lists nothing new: a server may ignore paging. */
async function listPrefix(prefix: string, source: ListSource, unique: Set<string>): Promise<void> {
  const authorization = authorizationFor(source);
  const { proxy, pageSize } = source;
  for (let page = 0, listed = 0; ; page++) {
    const query = new URLSearchParams({ prefix, page: String(page), pageSize: String(pageSize) });
    const { handles, totalCount } = await fetchPage(
      `${proxy}/api/handles?${query.toString()}`,
      authorization,
    );
    const known = unique.size;
    for (const handle of handles) unique.add(handle);
    listed += handles.length;
    printNote(`${listed} of ${printableText(String(totalCount))} handles listed`);
    if (handles.length !== pageSize || unique.size === known) return;
  }
}

interface HandlePage {
  totalCount?: unknown;
  handles?: unknown;
  message?: unknown;
}

async function fetchPage(url: string, authorization: string | undefined) {
  const { response, text } = await fetchText(url, {
    headers: authorization === undefined ? {} : { Authorization: authorization },
    // On a redirect to a different origin, fetch would drop the credentials and return an unrelated response.
    redirect: 'error',
  });
  const body = (tryDecode(JSON.parse, text) as HandlePage | null | undefined) ?? {};
  const { handles, totalCount } = body;
  if (!response.ok || !isListFile(handles)) throw listFailure(response.status, body, authorization);
  return { handles, totalCount };
}

const isListFile = (handles: unknown): handles is string[] =>
  Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');

const HINTS: Partial<Record<number, string>> = {
  401: 'the Handle server does not accept this user and password',
  403: 'the user needs the right list_handles in an HS_ADMIN of the prefix, and upstream.url must be https',
  501: 'listing is disabled on the Handle server (allow_list_hdls)',
};

const LOGIN_NEEDED = 'give --user (or HANDLE_USER) and its password in HANDLE_PASSWORD or --password-file';

function listFailure(status: number, { message }: HandlePage, authorization: string | undefined): Failure {
  const isMissing = status === 401 && authorization === undefined;
  const text = typeof message === 'string' ? ` ${printableText(message)}` : '';
  const hint = isMissing ? LOGIN_NEEDED : HINTS[status];
  const parts = [`cannot list the prefix: ${status}${text}`, ...(hint === undefined ? [] : [hint])];
  return new Failure(parts.join('; '), isMissing ? EXIT.usage : EXIT.failed);
}

/** Accepts no password as an argument, because arguments are visible to every user of the machine. */
function authorizationFor({ proxy, user, passwordFile }: ListSource): string | undefined {
  if (user === undefined || user === '') return undefined;
  const { protocol, hostname } = new URL(proxy);
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    const text = `Refusing to send a password to ${proxy} in the clear: use https or loopback.`;
    throw new Failure(text, EXIT.usage);
  }
  return basicLogin(user, readPassword(passwordFile));
}

function readPassword(file: string | undefined): string {
  const { HANDLE_PASSWORD: password = '' } = process.env;
  if (file === undefined && password === '')
    throw new Failure('Give the password of the user in HANDLE_PASSWORD or --password-file.', EXIT.usage);
  if (file === undefined) return password;
  try {
    return readFileSync(file, 'utf8').split(/\r?\n/, 1)[0] ?? '';
  } catch (error) {
    throw new Failure(`cannot read ${file}: ${failureReason(error)}`, EXIT.usage);
  }
}
