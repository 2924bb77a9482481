// Which lists are served from the mirror, and which are relayed to the server.
import { describe, expect, it } from 'vitest';
import { mirroredPage } from '../../src/plugins/mirror/mirror.js';

const namesOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `21.T1/${at}`);
const LIST = { handles: namesOf(10), isWhole: true, isCurrent: true, isPublic: true, listedAt: 0 };
const LONG = { ...LIST, handles: namesOf(25_000) };
const REQUEST = { method: 'GET', hasLogin: false, query: 'prefix=21.T1' };

const decide = (
  { query, ...request }: typeof REQUEST,
  list: Parameters<typeof mirroredPage>[1],
): ReturnType<typeof mirroredPage> =>
  mirroredPage({ ...request, parameters: new URLSearchParams(query) }, list);

describe('a list', () => {
  it.each([
    ['', {}],
    ['page=1&pageSize=3', { page: 1, pageSize: 3 }],
    ['page=0&pageSize=0', { page: 0, pageSize: 0 }],
    ['page=7', {}],
    ['pageSize=7', {}],
    ['pretty&callback=f', {}],
    ['page=0&pageSize=999999999', { page: 0, pageSize: 999_999_999 }],
  ])('is served from the mirror (%s)', (query, page) => {
    expect(decide({ ...REQUEST, query: `prefix=21.T1&${query}` }, LIST)).toEqual(page);
  });

  it.each([
    ['the prefix is not mirrored', {}, undefined],
    ['it is private', {}, { ...LIST, isPublic: false }],
    ['it is incomplete', {}, { ...LIST, isWhole: false }],
    ['a write may have changed it', {}, { ...LIST, isCurrent: false }],
    ['the caller has a login', { hasLogin: true }, LIST],
    ['it is requested with POST', { method: 'POST' }, LIST],
    ['it must be authoritative', { query: 'prefix=21.T1&auth=true' }, LIST],
    ['a parameter is unknown', { query: 'prefix=21.T1&sort=up' }, LIST],
    ['the page is negative', { query: 'prefix=21.T1&page=-1&pageSize=1' }, LIST],
    ['the page is empty', { query: 'prefix=21.T1&page=&pageSize=1' }, LIST],
    ['the page is beyond an int', { query: 'prefix=21.T1&page=99999&pageSize=99999' }, LIST],
  ])('is relayed if %s', (_condition, request, list) => {
    expect(decide({ ...REQUEST, ...request }, list)).toBeUndefined();
  });

  it.each([
    ['', false],
    ['page=0&pageSize=10000', true],
    ['page=0&pageSize=10001', false],
    ['page=1&pageSize=16000', true],
  ])('of a long prefix is served up to 10,000 handles at a time (%s: %s)', (query, isServed) => {
    const page = decide({ ...REQUEST, query: `prefix=21.T1&${query}` }, LONG);
    expect(page !== undefined).toBe(isServed);
  });

  it.each([
    ['', false],
    ['page=0&pageSize=1024', true],
    ['page=0&pageSize=1025', false],
    ['page=1&pageSize=1500', true],
  ])('of long names is served up to 1 MiB at a time (%s: %s)', (query, isServed) => {
    const handles = namesOf(2000).map((name) => name.padEnd(1024, 'x'));
    const page = decide({ ...REQUEST, query: `prefix=21.T1&${query}` }, { ...LIST, handles });
    expect(page !== undefined).toBe(isServed);
  });
});
