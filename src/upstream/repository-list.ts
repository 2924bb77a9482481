// The handles of a prefix at a repository, in the JSON of a Handle server. Repositories have no pages, so they are made here.
import type { ServerConfig } from '../config/upstream-servers.js';
import { upperAscii } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Steps, TimeSlicer } from '../time-slicer.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import type { ListOptions, RecordClient } from './record-client.js';
import { type RecordAnswer, readInSlices } from './reply.js';
import { createSource } from './sources/kinds.js';
import type { SourceSettings } from './sources/source.js';

type ListSettings = SourceSettings & Pick<ServerConfig, 'kind' | 'timeoutMs' | 'maxBodyBytes'>;

interface ListParts {
  pseudonym: string;
  limiter: Pick<ConcurrencyLimiter, 'run'>;
  dispatcher: UpstreamDispatcher;
  slicer: TimeSlicer;
}

export function createRepositoryList(
  settings: ListSettings,
  { pseudonym, limiter, dispatcher, slicer }: ListParts,
): RecordClient['list'] {
  const { origin } = parseAddress(settings.url);
  const { list } = createSource(settings);
  const headers = requestHeaders({ pseudonym });
  return async function listHandles(prefix, paging) {
    if (list === undefined) return NO_LISTS;
    const request = { origin, method: 'GET' as const, path: list.pathOf(prefix), headers };
    return limiter.run(
      async () => {
        const response = await exchange(dispatcher, request, settings);
        const handles = list.handlesIn(response);
        if (handles === undefined) return NO_LISTS;
        const steps = pageOf(handles, prefix, paging);
        return readInSlices(slicer, steps, { chars: response.body.length, caller: undefined });
      },
      { key: undefined, caller: undefined },
    );
  };
}

const answer = (
  status: number,
  members: Record<string, unknown> & { responseCode: number },
): RecordAnswer => ({
  status,
  responseCode: members.responseCode,
  members,
  body: JSON.stringify(members),
  retryAfter: undefined,
  challenge: undefined,
});

const NO_LISTS = answer(501, {
  responseCode: RESPONSE_CODE.operationNotSupported,
  message: 'This repository does not list its handles',
});

/** A step for this many handles takes less than a millisecond. */
const HANDLES_PER_STEP = 1000;

/** The page of the handles under the prefix; all of them unless both numbers are given (recording "list: page=0&pageSize=3"). */
function* pageOf(
  listed: readonly string[],
  prefix: string,
  { page, pageSize }: ListOptions,
): Steps<RecordAnswer> {
  const start = `${upperAscii(prefix)}/`;
  const handles: string[] = [];
  for (const [at, handle] of listed.entries()) {
    if (at % HANDLES_PER_STEP === 0) yield;
    if (upperAscii(handle.slice(0, start.length)) === start) handles.push(handle);
  }
  const of = { responseCode: RESPONSE_CODE.success, prefix, totalCount: String(handles.length) };
  if (page === undefined || pageSize === undefined) return answer(200, { ...of, handles });
  return answer(200, {
    ...of,
    page,
    pageSize,
    handles: handles.slice(page * pageSize, (page + 1) * pageSize),
  });
}
