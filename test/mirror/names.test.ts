// Lists of a prefix, which the server sends in pages of 10,000 handles.
import { describe, expect, it } from 'vitest';
import { handleRef } from '../../src/handle/handle.js';
import { ListRefused, PAGE_SIZE, listNames } from '../../src/plugins/mirror/names.js';
import type { ListAnswer } from '../../src/upstream/reply.js';

const namesOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `21.t1/${at}`);

const answerOf = (
  members: Record<string, unknown>,
  handles?: readonly string[],
  status = 200,
): ListAnswer => ({
  ...{ status, responseCode: status === 200 ? 1 : 402, members, ...(handles && { handles }) },
  ...{ retryAfter: undefined, challenge: undefined },
});

interface Listing {
  /** Returns the complete list at the time of a request. */
  listAt: (request: number) => readonly string[];
  maxHandles?: number;
  previous?: ReadonlySet<string>;
}

async function listFrom({ listAt, maxHandles = 1_000_000, previous = new Set() }: Listing) {
  let requests = 0;
  const readPage = (page: number): Promise<ListAnswer> => {
    const all = listAt(requests++);
    const handles = all.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
    return Promise.resolve(answerOf({ totalCount: String(all.length) }, handles));
  };
  const refOf = (text: string) => handleRef(text, false);
  const list = await listNames({ prefix: '21.T1', maxHandles, refOf, previous, readPage });
  return { ...list, requests };
}

describe('prefix list', () => {
  it.each([0, 1, PAGE_SIZE, 2 * PAGE_SIZE + 1])('is complete with %i handles', async (count) => {
    const { names, isWhole } = await listFrom({ listAt: () => namesOf(count) });
    expect([names.size, isWhole]).toEqual([count, true]);
  });

  it('contains keys in upper case', async () => {
    const { names } = await listFrom({ listAt: () => ['21.t1/abc'] });
    expect([...names]).toEqual(['21.T1/ABC']);
  });

  it('contains the handles in the spelling and order of the server', async () => {
    const { handles } = await listFrom({ listAt: () => ['21.t1/b', '21.T1/A'] });
    expect(handles).toEqual(['21.t1/b', '21.T1/A']);
  });

  it('is not whole if a handle is listed twice', async () => {
    const { isWhole, handles } = await listFrom({ listAt: () => ['21.T1/A', '21.T1/a'] });
    expect([isWhole, handles]).toEqual([false, []]);
  });

  it('is read again if it changes between two pages', async () => {
    const [before, after] = [namesOf(PAGE_SIZE + 5), namesOf(PAGE_SIZE + 5).slice(1)];
    const { names, isWhole, requests } = await listFrom({ listAt: (at) => (at === 0 ? before : after) });
    expect([names.size, isWhole, requests]).toEqual([after.length, true, 4]);
  });

  it('is incomplete, and retains the previous handles, if it changes in each pass', async () => {
    const all = namesOf(PAGE_SIZE + 5);
    const { names, isWhole } = await listFrom({
      listAt: (at) => all.slice(at % 2),
      previous: new Set(['21.T1/PREVIOUS']),
    });
    expect(isWhole).toBe(false);
    expect(names.has('21.T1/PREVIOUS')).toBe(true);
    expect(names.size).toBeGreaterThanOrEqual(all.length);
  });

  it('drops previous handles once it is complete', async () => {
    const { names } = await listFrom({ listAt: () => namesOf(2), previous: new Set(['21.T1/PREVIOUS']) });
    expect([...names]).toEqual(['21.T1/0', '21.T1/1']);
  });

  it('is truncated at the maximum number of handles', async () => {
    const { names, isWhole, requests } = await listFrom({
      listAt: () => namesOf(30_000),
      maxHandles: 12_000,
    });
    expect([names.size, isWhole, requests]).toEqual([12_000, false, 2]);
  });

  it('is truncated at 100 characters of names per handle of the maximum, and at least 1 MiB', async () => {
    const long = namesOf(30_000).map((name) => name.toUpperCase() + 'X'.repeat(1000));
    const listAt = () => long;
    const { names, isWhole, requests } = await listFrom({ listAt, maxHandles: 30_000 });
    const chars = [...names].reduce((sum, { length }) => sum + length, 0);
    expect(chars).toBeGreaterThan(3_000_000 - 2000);
    expect(chars).toBeLessThan(3_000_000 + 2000);
    expect([isWhole, requests]).toEqual([false, 1]);
    const small = await listFrom({ listAt: () => long.slice(0, 500), maxHandles: 500 });
    expect([small.names.size, small.isWhole]).toEqual([500, true]);
  });

  it('counts a name twice that the server spells differently from its key', async () => {
    const names = namesOf(3000).map((name) => `${name}/${'x'.repeat(1000)}`);
    const { names: kept, isWhole } = await listFrom({ listAt: () => names, maxHandles: 3000 });
    expect([kept.size < 600, isWhole]).toEqual([true, false]);
  });

  it('omits handles of different prefixes, and is then incomplete', async () => {
    const { names, isWhole } = await listFrom({ listAt: () => ['21.T1/A', '21.T2/A'] });
    expect([[...names], isWhole]).toEqual([['21.T1/A'], false]);
  });

  it('ends with the first page of a server that sends the same page again', async () => {
    const page = namesOf(PAGE_SIZE);
    const readPage = () => Promise.resolve(answerOf({ totalCount: PAGE_SIZE }, page));
    const refOf = (text: string) => handleRef(text, false);
    const parts = { prefix: '21.T1', maxHandles: 1_000_000, refOf, previous: new Set<string>(), readPage };
    const { isWhole, names, handles } = await listNames(parts);
    expect([isWhole, names.size, handles.length]).toEqual([true, PAGE_SIZE, PAGE_SIZE]);
  });

  it.each([
    [500, 'The Handle server reported an error: status 500'],
    [503, 'The Handle server reported an error: status 503'],
    [429, 'The Handle server reported an error: status 429'],
    [501, 'status 501'],
    [403, 'status 403'],
  ])('fails differently if the server fails and if it refuses the list (%i)', async (status, message) => {
    const readPage = () => Promise.resolve(answerOf({}, undefined, status));
    const refOf = (text: string) => handleRef(text, false);
    const parts = { prefix: '21.T1', maxHandles: 10, refOf, previous: new Set<string>(), readPage };
    const failure: unknown = await listNames(parts).catch((error: unknown) => error);
    expect(failure).toHaveProperty('message', `${message}, response code 402`);
    expect(failure instanceof ListRefused).toBe(!message.startsWith('The'));
  });

  it('fails with the status and response code if the server refuses it', async () => {
    const readPage = () => Promise.resolve(answerOf({}, undefined, 401));
    const refOf = (text: string) => handleRef(text, false);
    const parts = { prefix: '21.T1', maxHandles: 10, refOf, previous: new Set<string>(), readPage };
    await expect(listNames(parts)).rejects.toThrow('status 401, response code 402');
  });
});
