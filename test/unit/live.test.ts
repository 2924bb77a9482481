import { describe, expect, test } from 'vitest';
import { Live } from '../../src/config/live.js';

describe('a reload that a listener rejects', () => {
  /** Listeners that note the settings they see; those of `rejecting` then throw. */
  function start(rejecting: readonly string[]) {
    const live = new Live('old');
    const seen: string[] = [];
    for (const name of ['first', 'second', 'third', 'fourth']) {
      live.onReload(() => {
        const what = `${name} ${live.current}`;
        seen.push(what);
        if (rejecting.includes(what)) throw new Error(`rejected: ${what}`);
      });
    }
    return { live, seen };
  }
  const SEEN = ['first new', 'second new', 'third new', 'first old', 'second old', 'third old'];

  test('gives the previous settings to all that have seen the new ones, and to the listener that rejected them', () => {
    const { live, seen } = start(['third new']);
    expect(() => {
      live.reload('new');
    }).toThrow(/^rejected: third new$/);
    expect(live.current).toBe('old');
    expect(seen).toEqual(SEEN);
  });

  test('also reports which previous settings could not be restored, and restores the others', () => {
    const { live, seen } = start(['third new', 'second old']);
    expect(() => {
      live.reload('new');
    }).toThrow(
      'rejected: third new; the previous settings are not restored everywhere, restart the proxy: rejected: second old',
    );
    expect(seen).toEqual(SEEN);
  });
});
