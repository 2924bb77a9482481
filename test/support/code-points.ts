// Texts of any Unicode characters. fast-check's `unit: 'binary'` lists all million characters in each process.
import fc from 'fast-check';

const [FIRST_SURROGATE, AFTER_SURROGATES, CODE_POINTS] = [0xd800, 0xe000, 0x11_0000];
const SURROGATES = AFTER_SURROGATES - FIRST_SURROGATE;

/** Any character; fast-check shrinks it to U+0000. */
const codePoints = fc.integer({ min: 0, max: CODE_POINTS - SURROGATES - 1 }).map(
  (at) => String.fromCodePoint(at < FIRST_SURROGATE ? at : at + SURROGATES),
  (text) => {
    const point = Number(String(text).codePointAt(0));
    if (String.fromCodePoint(point) !== text) throw new Error('not one character');
    return point < FIRST_SURROGATE ? point : point - SURROGATES;
  },
);

/** Texts of any characters, with the names that are dangerous to JavaScript among them. */
export const unicodeTexts = (length: { maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ unit: codePoints, ...length });
