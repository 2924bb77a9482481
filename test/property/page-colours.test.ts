// Text of every page is readable with any accent colour: WCAG 2.2 AA asks for a contrast of 4.5.
import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { contrastOf, readableOn } from '../../src/html/contrast.js';
import { pageStyle } from '../../src/html/style.js';

const accents = fc.stringMatching(/^#(?:[\da-fA-F]{3}){1,2}$/);

/** The colours of a style sheet by name, in light and in dark. The last declaration counts. */
const colourTables = (style: string): Map<string, string>[] =>
  [...style.matchAll(/:root\{([^}]*)\}/g)].map(
    ([, declarations = '']) =>
      new Map(
        [...declarations.matchAll(/--([a-z-]+):(#\w+)/g)].map(([, name = '', colour = '']) => [name, colour]),
      ),
  );

/** The text colours of a page with the colours they are on. */
const TEXTS: readonly [text: string, backs: readonly string[]][] = [
  ['on-accent', ['accent']],
  ['link', ['back', 'card', 'notice', 'alert']],
  ['text', ['back', 'card', 'notice', 'alert']],
  ['quiet', ['back', 'card']],
];

function assertReadable(style: string): void {
  const tables = colourTables(style);
  expect(tables).toHaveLength(2);
  for (const colours of tables) {
    const colour = (name: string): string => colours.get(name) ?? '';
    for (const [text, backs] of TEXTS)
      for (const back of backs)
        expect(contrastOf(colour(text), colour(back)), `${text} on ${back}`).toBeGreaterThanOrEqual(4.5);
  }
}

describe('text on pages is readable', () => {
  test('without an accent colour', () => {
    assertReadable(pageStyle());
  });

  test.prop([accents])('with any accent colour', (accent) => {
    assertReadable(pageStyle(accent));
  });

  test.each(['#fff', '#000', '#ffffff', '#000000', '#777', '#ff0', '#00f', '#f4f6f8'])(
    'with %s',
    (accent) => {
      assertReadable(pageStyle(accent));
    },
  );
});

test('a readable accent is used as it is', () => {
  expect(readableOn(['#ffffff'], '#00695c')).toBe('#00695c');
});

test('contrast is computed as WCAG computes it', () => {
  expect(contrastOf('#000', '#ffffff')).toBe(21);
  expect(contrastOf('#777777', '#fff')).toBeCloseTo(4.48, 2);
  expect(contrastOf('#fff', '#767676')).toBeCloseTo(4.54, 2);
  expect(contrastOf('#ff0000', '#00ff00')).toBeCloseTo(2.91, 2);
});
