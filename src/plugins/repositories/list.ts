// Lists the handles of a prefix at a repository, in a Handle server's JSON, and paginates the list.
import { upperAscii } from '../../handle/handle.js';
import { type ListPage, RESPONSE_CODE, listMembers } from '../../handle/outcome.js';
import type { Steps } from '../../time-slicer.js';
import { exchange, parseAddress, requestHeaders } from '../../upstream/exchange.js';
import { type RecordAnswer, answerWith, readInSlices } from '../../upstream/reply.js';
import type { UpstreamResponse } from '../../upstream/response.js';
import type { ServerConfig } from '../../config/upstream-servers.js';
import type { ServerAccess, RecordClient } from '../../upstream/contract.js';

/** The requests for lists of one repository. */
export interface ListProtocol {
  pathOf: (prefix: string) => string;
  /** Returns the listed handles; undefined if lists are hidden. @throws ServiceError UPSTREAM_* */
  handlesIn: (response: UpstreamResponse) => string[] | undefined;
}

/**
 * The received list, which may include handles of longer prefixes (`1234567` for `123456`). `handles` is
 * undefined if the repository hides its lists.
 */
interface Listed {
  handles: string[] | undefined;
  chars: number;
}

export function createRepositoryList(
  list: ListProtocol,
  settings: ServerConfig,
  { pseudonym, limiter, dispatcher, slicer }: ServerAccess,
): RecordClient['list'] {
  const { origin } = parseAddress(settings.url);
  const headers = requestHeaders({ pseudonym });
  const reading = new Map<string, Promise<Listed>>();

  async function read(path: string): Promise<Listed> {
    const request = { origin, method: 'GET' as const, path, headers };
    const send = (): Promise<UpstreamResponse> => exchange(dispatcher, request, settings);
    const response = await limiter.run(send, { key: undefined, caller: undefined });
    return { handles: list.handlesIn(response), chars: response.body.length };
  }

  /** Reads a list (single flight), so that concurrent callers cause only one request. */
  function join(path: string): Promise<Listed> {
    const joined = reading.get(path) ?? read(path).finally(() => reading.delete(path));
    reading.set(path, joined);
    return joined;
  }

  return async function listHandles(prefix, paging) {
    const { handles, chars } = await join(list.pathOf(prefix));
    if (handles === undefined) return NO_LISTS;
    return readInSlices(slicer, listPage(handles, prefix, paging), { chars, caller: undefined });
  };
}

export const NO_LISTS = answerWith(501, {
  responseCode: RESPONSE_CODE.operationNotSupported,
  message: 'This repository does not list its handles',
});

/** Filtering this many handles takes less than a millisecond. */
const HANDLES_PER_STEP = 1000;

/** Returns one page of the prefix's handles, or all of them. */
function* listPage(listed: readonly string[], prefix: string, paging: ListPage): Steps<RecordAnswer> {
  const start = `${upperAscii(prefix)}/`;
  const handles: string[] = [];
  for (const [at, handle] of listed.entries()) {
    if (at % HANDLES_PER_STEP === 0) yield;
    if (upperAscii(handle.slice(0, start.length)) === start) handles.push(handle);
  }
  return answerWith(200, listMembers(prefix, handles, paging));
}
