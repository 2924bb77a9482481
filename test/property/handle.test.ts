import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import {
  MAX_HANDLE_BYTES,
  foldHandle,
  handleRef,
  handleToPath,
  parseHandle,
  upperAscii,
} from '../../src/handle/handle.js';

const handles = fc
  .string({ unit: fc.constantFrom(...Array.from('aZ0.-_/+;%?#&= ~@:|\\äß漢😀')) })
  .filter((text) => text !== '' && Buffer.byteLength(text) <= MAX_HANDLE_BYTES);

describe('handle in a path', () => {
  test.prop([handles])('is unchanged by encoding and parsing', (handle) => {
    expect(parseHandle(handleToPath(handle))).toEqual({ ok: true, handle });
  });

  test.prop([handles.filter((handle) => handle !== '.' && handle !== '..')])(
    'is unchanged by WHATWG URL parsing',
    (handle) => {
      const path = new URL(`http://upstream/api/handles/${handleToPath(handle)}`).pathname;
      expect(parseHandle(path.slice('/api/handles/'.length))).toEqual({ ok: true, handle });
    },
  );

  test.prop([handles])('never contains a double slash, which a proxy could merge', (handle) => {
    expect(`/${handleToPath(handle)}`).not.toContain('//');
  });

  test.prop([fc.string({ unit: 'binary-ascii' })])('is parsed or rejected for any raw path', (raw) => {
    const parsed = parseHandle(raw);
    if (parsed.ok) expect(Buffer.byteLength(parsed.handle)).toBeGreaterThan(0);
  });

  test.prop([handles, fc.boolean()])(
    'has the same cache key with its prefix in lower case',
    (handle, caseSensitive) => {
      const slash = handle.indexOf('/');
      const respelled =
        slash === -1 ? handle.toLowerCase() : handle.slice(0, slash).toLowerCase() + handle.slice(slash);
      fc.pre(upperAscii(respelled) === upperAscii(handle));
      expect(foldHandle(respelled, caseSensitive)).toBe(foldHandle(handle, caseSensitive));
    },
  );

  test.prop([handles, fc.boolean()])(
    'is parsed into the original text, the cache key and the upper-case prefix',
    (handle, caseSensitive) => {
      const [prefix = ''] = handle.split('/', 1);
      expect(handleRef(handle, caseSensitive)).toEqual({
        text: handle,
        key: foldHandle(handle.includes('/') ? handle : `0.NA/${handle}`, caseSensitive),
        prefix: upperAscii(prefix),
      });
    },
  );

  test.prop([handles])('preserves the case of non-ASCII letters', (handle) => {
    expect(foldHandle(handle, false)).toBe(upperAscii(handle));
    expect(upperAscii('ä')).toBe('ä');
  });
});

describe('raw handle path', () => {
  test.each([
    ['21.T1%2fa', '21.T1/a'],
    ['21.T1/%75rl1', '21.T1/url1'],
    ['21.T1/a+b', '21.T1/a+b'],
    ['21.T1/a%2Bb', '21.T1/a+b'],
    ['21.T1/semi;v=1', '21.T1/semi;v=1'],
    ['21.T1/a/../b', '21.T1/a/../b'],
    ['21.T1/dbl//x/', '21.T1/dbl//x/'],
    ['21.T1/%c3%a4', '21.T1/ä'],
    ['21.T1/x%FF%FE', '21.T1/x\uFFFD\uFFFD'],
    ['21.T1/%252F', '21.T1/%2F'],
  ])('is parsed: %s is the handle %s', (raw, handle) => {
    expect(parseHandle(raw)).toEqual({ ok: true, handle });
  });

  test.each([
    ['21.T1/x%', 'bad-escape'],
    ['21.T1/x%2', 'bad-escape'],
    ['21.T1/x%ZZ', 'bad-escape'],
    ['21.T1/x%00', 'null-byte'],
    ['', 'empty'],
    ['x'.repeat(2049), 'too-long'],
  ])('is rejected: %s (%s)', (raw, problem) => {
    expect(parseHandle(raw)).toEqual({ ok: false, problem });
  });
});
