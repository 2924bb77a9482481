import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  type ConditionHeaders,
  type ResourceState,
  evaluatePreconditions,
  isConditional,
  isCreateOnly,
  isNotModified,
} from '../../src/http/preconditions.js';
import { hasEtagCondition } from '../../src/record/condition.js';
import { partial } from '../support/partial.js';

const there = { exists: true, etags: ['"a"'] };
const gone = { exists: false };

const verdict = (method: string, headers: ConditionHeaders, state: Omit<ResourceState, 'method'> = there) =>
  evaluatePreconditions(headers, { method, ...state });

describe('preconditions (RFC 9110 section 13)', () => {
  describe('If-Match', () => {
    it.each([
      ['*', 'pass'],
      ['"a"', 'pass'],
      ['"b", "a"', 'pass'],
      [', "b",,"a" ,', 'pass'],
      ['"x,y", "a"', 'pass'],
      ['"b"', 'failed'],
      ['W/"a"', 'failed'],
      ['""', 'failed'],
    ])('is evaluated for %s against the ETag "a" as %s, for writes and reads', (header, expected) => {
      expect(verdict('PUT', { 'if-match': header })).toBe(expected);
      expect(verdict('GET', { 'if-match': header })).toBe(expected);
    });

    it.each(['*', '"a"'])('fails with %s for a missing handle', (header) => {
      expect(verdict('PUT', { 'if-match': header }, gone)).toBe('failed');
    });

    it('fails with ETags but passes with * for a handle without public values', () => {
      expect(verdict('PUT', { 'if-match': '"a"' }, { exists: true })).toBe('failed');
      expect(verdict('PUT', { 'if-match': '*' }, { exists: true })).toBe('pass');
    });
  });

  describe('If-None-Match', () => {
    it.each([
      ['*', 'failed', 'not-modified'],
      ['"a"', 'failed', 'not-modified'],
      ['W/"a"', 'failed', 'not-modified'],
      ['"b", W/"a"', 'failed', 'not-modified'],
      ['"b"', 'pass', 'pass'],
    ])(
      'is evaluated for %s against the ETag "a" as %s for a write and %s for a read',
      (header, write, read) => {
        for (const method of ['PUT', 'DELETE'])
          expect(verdict(method, { 'if-none-match': header })).toBe(write);
        for (const method of ['GET', 'HEAD']) expect(verdict(method, { 'if-none-match': header })).toBe(read);
      },
    );

    it.each(['*', '"a"', '""'])('passes with %s for a missing handle', (header) => {
      expect(verdict('PUT', { 'if-none-match': header }, gone)).toBe('pass');
    });

    it('names one of several representations', () => {
      const several = { exists: true, etags: ['"a"', '"a-gz"'] };
      expect(verdict('GET', { 'if-none-match': '"a-gz"' }, several)).toBe('not-modified');
      expect(verdict('GET', { 'if-match': '"a-gz"' }, several)).toBe('pass');
    });

    it.each(['gz', 'gzip', 'br', 'zstd'])('names a representation that was compressed (-%s)', (coding) => {
      // The second digest ends like a suffix.
      for (const digest of ['0123456789abcdefghijkl', '0123456789abcdefghi-gz']) {
        const state = { exists: true, etags: [`"${digest}"`] };
        for (const tag of [`"${digest}"`, `"${digest}-${coding}"`]) {
          expect(verdict('PUT', { 'if-match': tag }, state)).toBe('pass');
          expect(verdict('GET', { 'if-none-match': `W/${tag}` }, state)).toBe('not-modified');
          // Our compressed response is a different representation (RFC 9111 §4.3.4).
          expect(isNotModified(`"b", W/${tag}`, `"${digest}"`)).toBe(tag !== `"${digest}-gz"`);
        }
        expect(verdict('PUT', { 'if-match': `"${digest}-x"` }, state)).toBe('failed');
        expect(isNotModified(`"${digest}-x"`, `"${digest}"`)).toBe(false);
      }
    });

    it('is evaluated after If-Match', () => {
      expect(verdict('GET', { 'if-match': '"b"', 'if-none-match': '"a"' })).toBe('failed');
      expect(verdict('GET', { 'if-match': '"a"', 'if-none-match': '"a"' })).toBe('not-modified');
    });
  });

  describe('If-Unmodified-Since', () => {
    const date = { 'if-unmodified-since': 'Thu, 01 Jan 2099 00:00:00 GMT' };

    it('fails for a write, because records have no modification date', () => {
      for (const method of ['PUT', 'DELETE', 'POST']) expect(verdict(method, date)).toBe('failed');
      expect(verdict('PUT', { 'if-unmodified-since': 'yesterday' })).toBe('failed');
    });

    it('is ignored together with If-Match, and for a read', () => {
      expect(verdict('PUT', { ...date, 'if-match': '"a"' })).toBe('pass');
      expect(verdict('GET', date)).toBe('pass');
    });
  });

  it.each(['a', '"a', '"a" b', '"a""b"', 'w/"a"', '"a b"', '', '*, "a"', ','])(
    'reject %j as an ETag list',
    (header) => {
      const refusal = (name: string): Error =>
        expect.objectContaining({
          code: 'BAD_REQUEST',
          message: expect.stringMatching(new RegExp(`: ${name} has to be \\*`)) as string,
        }) as Error;
      expect(() => verdict('PUT', { 'if-match': header })).toThrow(refusal('If-Match'));
      expect(() => verdict('GET', { 'if-none-match': header })).toThrow(refusal('If-None-Match'));
    },
  );

  it('pass when no condition is present', () => {
    expect(verdict('PUT', {})).toBe('pass');
  });
});

describe('create-only write', () => {
  const star = { 'if-none-match': '*' };

  it.each([
    ['PUT', star, true],
    ['PUT', { 'if-none-match': ' * ' }, true],
    ['PUT', { 'if-none-match': '"a"' }, false],
    ['PUT', {}, false],
    ['DELETE', star, false],
    ['PUT', { ...star, 'if-match': '"a"' }, false],
    ['PUT', { ...star, 'if-unmodified-since': 'Thu, 01 Jan 2099 00:00:00 GMT' }, false],
    ['PUT', { 'if-unmodified-since': 'Thu, 01 Jan 2099 00:00:00 GMT' }, false],
  ])('is recognised: %s with %j is %s', (method, headers, expected) => {
    expect(isCreateOnly(partial<IncomingMessage>({ method, headers }))).toBe(expected);
  });
});

describe('condition of a public read', () => {
  it.each([
    [undefined, false],
    ['"a"', true],
    ['W/"a"', true],
    ['"b", W/"a"', true],
    ['*', true],
    ['"b",*', true],
    ['"b"', false],
    ['a', false],
    ['x"a"', false],
    ['xW/"a"', false],
    ['', false],
  ])('is evaluated without an error: %s is %s', (header, expected) => {
    expect(isNotModified(header, '"a"')).toBe(expected);
  });
});

describe('conditional write', () => {
  it.each<[ConditionHeaders & { 'if-modified-since'?: string }, boolean, boolean]>([
    [{}, false, false],
    [{ 'if-match': '*' }, true, true],
    [{ 'if-none-match': '*' }, true, true],
    [{ 'if-unmodified-since': 'Thu, 01 Jan 2099 00:00:00 GMT' }, true, false],
    [{ 'if-modified-since': 'Thu, 01 Jan 2099 00:00:00 GMT' }, false, false],
  ])('is recognised: %j is %s, by its ETag %s', (headers, expected, isByEtag) => {
    expect(isConditional(partial<IncomingMessage>({ headers }))).toBe(expected);
    expect(hasEtagCondition(headers)).toBe(isByEtag);
  });
});
