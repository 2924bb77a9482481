// Page text is readable with any accepted accent colour: WCAG 2.2 AA requires a contrast ratio of 4.5:1.
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { ConfigError } from '../../src/config/load.js';
import { contrastOf } from '../../src/config/schema-interfaces.js';
import { pageStyle } from '../../src/html/style.js';
import { configFrom } from '../support/load-config.js';

const accents = fc.stringMatching(/^#(?:[\da-fA-F]{3}){1,2}$/);

/** Returns the style sheet colours by name for light and dark mode; print uses the light ones. */
const colourTables = (style: string): Map<string, string>[] =>
  [...style.matchAll(/:root\{([^}]*--[^}]*)\}/g)].map(
    ([, declarations = '']) =>
      new Map(
        [...declarations.matchAll(/--([a-z-]+):(#\w+)/g)].map(([, name = '', colour = '']) => [name, colour]),
      ),
  );

/** Text colours with their possible background colours. */
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

/** Whether the configuration accepts the accent colour. */
function isAccepted(accent: string): boolean {
  try {
    return configFrom({ env: { PAGE_ACCENT_COLOR: accent } }).page.accentColor === accent;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return false;
  }
}

describe('page colours', () => {
  test('are readable when no accent colour is set', () => {
    assertReadable(pageStyle());
  });

  test.prop([accents])('are readable with exactly the accepted accent colours', (accent) => {
    const style = pageStyle(accent);
    const light = colourTables(style)[0];
    const contrasts = ['back', 'card', 'notice', 'alert'].map((name) =>
      contrastOf(accent, light?.get(name) ?? ''),
    );
    expect(isAccepted(accent)).toBe(Math.min(...contrasts) >= 4.5);
    if (isAccepted(accent)) assertReadable(style);
  });

  test('have a contrast ratio that is computed as in WCAG', () => {
    expect(contrastOf('#000', '#ffffff')).toBe(21);
    expect(contrastOf('#777777', '#fff')).toBeCloseTo(4.48, 2);
    expect(contrastOf('#fff', '#767676')).toBeCloseTo(4.54, 2);
    expect(contrastOf('#ff0000', '#00ff00')).toBeCloseTo(2.91, 2);
  });
});
