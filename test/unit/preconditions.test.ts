import { describe, expect, it } from 'vitest';
import {
  type ConditionHeaders,
  type ResourceState,
  evaluatePreconditions,
} from '../../src/http/preconditions.js';

const there = { exists: true, etags: ['"a"'], lastModified: new Date('2026-01-01T00:00:00.700Z') };
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

    it('is evaluated after If-Match', () => {
      expect(verdict('GET', { 'if-match': '"b"', 'if-none-match': '"a"' })).toBe('failed');
      expect(verdict('GET', { 'if-match': '"a"', 'if-none-match': '"a"' })).toBe('not-modified');
    });
  });

  describe('date conditions', () => {
    const same = 'Thu, 01 Jan 2026 00:00:00 GMT';
    const before = 'Wed, 31 Dec 2025 23:59:59 GMT';

    it('detect a modification with a precision of one second for a read', () => {
      expect(verdict('GET', { 'if-modified-since': same })).toBe('not-modified');
      expect(verdict('GET', { 'if-modified-since': before })).toBe('pass');
      expect(verdict('PUT', { 'if-modified-since': same })).toBe('pass');
    });

    it('reject a write to a changed handle (If-Unmodified-Since)', () => {
      expect(verdict('PUT', { 'if-unmodified-since': same })).toBe('pass');
      expect(verdict('PUT', { 'if-unmodified-since': before })).toBe('failed');
    });

    it('are ignored when invalid or combined with ETags', () => {
      expect(verdict('GET', { 'if-none-match': '"b"', 'if-modified-since': same })).toBe('pass');
      expect(verdict('PUT', { 'if-match': '"a"', 'if-unmodified-since': before })).toBe('pass');
      expect(verdict('GET', { 'if-modified-since': 'yesterday' })).toBe('pass');
    });
  });

  it.each(['a', '"a', '"a" b', '"a""b"', 'w/"a"', '"a b"', '', '*, "a"', ','])(
    'reject %j as an ETag list',
    (header) => {
      const refusal = expect.objectContaining({ code: 'BAD_REQUEST' }) as Error;
      expect(() => verdict('PUT', { 'if-match': header })).toThrow(refusal);
      expect(() => verdict('GET', { 'if-none-match': header })).toThrow(refusal);
    },
  );

  it('pass when no condition is present', () => {
    expect(verdict('PUT', {})).toBe('pass');
  });
});
