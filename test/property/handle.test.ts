import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import {
  MAX_HANDLE_BYTES,
  foldHandle,
  handleRef,
  handleToPath,
  parseHandle,
  recordKey,
  upperAscii,
} from '../../src/handle/handle.js';

const handles = fc
  .string({ unit: fc.constantFrom(...Array.from('aZ0.-_/+;%?#&= ~@:|\\äß漢😀')) })
  .filter((text) => text !== '' && Buffer.byteLength(text) <= MAX_HANDLE_BYTES);

describe('a handle in a path', () => {
  test.prop([handles])('is unchanged by writing and parsing', (handle) => {
    expect(parseHandle(handleToPath(handle))).toEqual({ ok: true, handle });
  });

  test.prop([handles.filter((handle) => handle !== '.' && handle !== '..')])(
    'is unchanged by a WHATWG URL',
    (handle) => {
      const path = new URL(`http://upstream/api/handles/${handleToPath(handle)}`).pathname;
      expect(parseHandle(path.slice('/api/handles/'.length))).toEqual({ ok: true, handle });
    },
  );

  test.prop([handles])('never has a doubled slash that a proxy could merge', (handle) => {
    expect(`/${handleToPath(handle)}`).not.toContain('//');
  });

  test.prop([fc.string({ unit: 'binary-ascii' })])('is parsed or refused for any raw path', (raw) => {
    const parsed = parseHandle(raw);
    if (parsed.ok) expect(Buffer.byteLength(parsed.handle)).toBeGreaterThan(0);
  });

  test.prop([handles, fc.boolean()])(
    'folds to the same key in every spelling of its prefix',
    (handle, caseSensitive) => {
      const slash = handle.indexOf('/');
      const respelled =
        slash === -1 ? handle.toLowerCase() : handle.slice(0, slash).toLowerCase() + handle.slice(slash);
      fc.pre(upperAscii(respelled) === upperAscii(handle));
      expect(foldHandle(respelled, caseSensitive)).toBe(foldHandle(handle, caseSensitive));
    },
  );

  test.prop([handles, fc.boolean()])(
    'is parsed once: the original text, the cache key, the upper-case prefix',
    (handle, caseSensitive) => {
      const [prefix = ''] = handle.split('/', 1);
      expect(handleRef(handle, caseSensitive)).toEqual({
        text: handle,
        key: recordKey(handle, caseSensitive),
        prefix: upperAscii(prefix),
      });
    },
  );

  test.prop([handles])('keeps the case of letters beyond ASCII', (handle) => {
    expect(foldHandle(handle, false)).toBe(upperAscii(handle));
    expect(upperAscii('ä')).toBe('ä');
  });
});

describe('a raw handle path', () => {
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
  ])('%s is the handle %s', (raw, handle) => {
    expect(parseHandle(raw)).toEqual({ ok: true, handle });
  });

  test.each([
    ['21.T1/x%', 'bad-escape'],
    ['21.T1/x%2', 'bad-escape'],
    ['21.T1/x%ZZ', 'bad-escape'],
    ['21.T1/x%00', 'null-byte'],
    ['', 'empty'],
    ['x'.repeat(2049), 'too-long'],
  ])('%s is refused: %s', (raw, problem) => {
    expect(parseHandle(raw)).toEqual({ ok: false, problem });
  });
});
