// Selection of values by index and type in a native resolution, and the spelling of its handle.
import { describe, expect, it } from 'vitest';
import { ENVELOPE_BYTES, decodeRequest } from '../../src/plugins/native/codec.js';
import { useNock } from '../support/nock.js';
import {
  type NativeQuestion,
  askNative,
  codeOf,
  indexesIn,
  nativeRequest,
} from '../support/native-messages.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const TYPES: [index: number, type: string][] = [
  [7, 'URL'],
  [3, 'URL.MIRROR'],
  [0, 'url'],
  [4, 'URLS'],
  [5, ''],
  [6, 'DÉSC'],
  [8, 'URL.'],
  [-2, 'A.B.C'],
];
const values = TYPES.map(([index, type]) => ({
  index,
  type,
  data: { format: 'string', value: 'x' },
  ttl: 86_400,
}));

describe('native selection', () => {
  it.each<[what: string, filter: { indexes?: number[]; types?: string[] }, expected: number[] | undefined]>([
    ['without a filter, in stored order', {}, [7, 3, 0, 4, 5, 6, 8, -2]],
    ['by indexes, in stored order', { indexes: [3, 7] }, [7, 3]],
    ['with an index twice', { indexes: [3, 3] }, [3]],
    ['by index 0', { indexes: [0] }, [0]],
    ['by a negative index', { indexes: [-2] }, [-2]],
    ['by a missing index', { indexes: [1] }, undefined],
    ['by type, in any case', { types: ['uRl'] }, [7, 0]],
    ['by a type twice', { types: ['URL', 'url'] }, [7, 0]],
    ['by a type and its sub-types', { types: ['url.'] }, [7, 3, 0, 8]],
    ['by a type of several parts', { types: ['A.'] }, [-2]],
    ['by a full type of several parts', { types: ['A.B.'] }, [-2]],
    ['by a part of a type', { types: ['A.B'] }, undefined],
    ['by the start of a type', { types: ['UR'] }, undefined],
    ['by an empty type', { types: [''] }, undefined],
    ['by a dot', { types: ['.'] }, undefined],
    ['by a non-ASCII type in the same case', { types: ['dÉsc'] }, [6]],
    ['by a non-ASCII type in a different case', { types: ['DéSC'] }, undefined],
    ['by index or type (union)', { indexes: [3], types: ['URLS', '', '.'] }, [3, 4]],
    ['by index or type of the same value', { indexes: [7], types: ['URL'] }, [7, 0]],
  ])('returns the matching values %s', async (_what, filter, expected) => {
    mockUpstream(recordOf(values));
    const { app } = await startProxy();
    const answer = await askNative(app.native, HANDLE, filter);
    expect(indexesIn(answer)).toEqual(expected);
    expect(codeOf(answer)).toBe(expected === undefined ? 200 : 1);
  });
});

describe('native handle', () => {
  it.each([
    ['with percent characters', '21.T1/a%2Fb%', '21.T1%2Fa%252Fb%25'],
    ['with a plus and a space', '21.T1/a+b c', '21.T1%2Fa%2Bb%20c'],
    ['with characters that end a path', '21.T1/a?b#c', '21.T1%2Fa%3Fb%23c'],
    ['with dot segments', '21.T1/../a//b/', '21.T1%2F..%2Fa%2F%2Fb%2F'],
    ['with non-ASCII characters', '21.T1/ä𝕳', '21.T1%2F%C3%A4%F0%9D%95%B3'],
  ])('is requested and echoed unchanged %s', async (_what, handle, sent) => {
    const upstream = mockUpstream((target) => recordOf(values, handleIn(target)));
    const { app } = await startProxy();
    const { body } = await askNative(app.native, handle);
    expect(body.kind === 'record' && body.handle.toString()).toBe(handle);
    expect(upstream.targets.map((target) => encodeURIComponent(handleIn(target)))).toEqual([sent]);
  });

  it('matches a handle in different case, except for non-ASCII letters', async () => {
    const upstream = mockUpstream((target) => recordOf(values, handleIn(target)));
    const { app } = await startProxy();
    for (const handle of ['21.t1/aé', '21.T1/Aé', '21.T1/AÉ']) {
      const { body } = await askNative(app.native, handle);
      expect(body.kind === 'record' && body.handle.toString()).toBe(handle);
    }
    expect(upstream.asked).toBe(2);
  });

  it('is not percent-decoded', async () => {
    const upstream = mockUpstream((target) => recordOf(values, handleIn(target)));
    const { app } = await startProxy();
    for (const handle of ['21.T1/a/b', '21.T1/a%2Fb']) await askNative(app.native, handle);
    expect(upstream.asked).toBe(2);
  });
});

/** Returns the handle in a request target, decoded once. */
const handleIn = (target: string): string =>
  decodeURIComponent(target.slice('/api/handles/'.length).split('?', 1)[0] ?? '');

describe('native request for thousands of indexes or types', () => {
  const decode = (question: NativeQuestion) =>
    decodeRequest(nativeRequest(HANDLE, question).subarray(ENVELOPE_BYTES), { isPadded: true });

  it.each<[string, (count: number) => NativeQuestion]>([
    ['indexes', (count) => ({ indexes: Array<number>(count).fill(1) })],
    ['types', (count) => ({ types: Array<string>(count).fill('') })],
  ])('is rejected as malformed above 2,048 %s, a number of values that no message has', (_what, ask) => {
    expect(decode(ask(2048))).toMatchObject({ ok: true });
    expect(decode(ask(2049))).toEqual({ ok: false, problem: 'Invalid array size' });
  });
});
