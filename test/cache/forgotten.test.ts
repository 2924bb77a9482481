import { describe, expect, test } from 'vitest';
import { Forgotten } from '../../src/cache/forgotten.js';

describe('the list of forgotten keys', () => {
  test('knows which tickets are older than a forgetting', () => {
    const forgotten = new Forgotten();
    const before = forgotten.now();
    forgotten.forget('A');
    expect(forgotten.isSince('A', before)).toBe(true);
    expect(forgotten.isSince('B', before)).toBe(false);
    expect(forgotten.isSince('A', forgotten.now())).toBe(false);
  });

  test('refuses every older ticket once it had to drop a key, rather than believe it', () => {
    const forgotten = new Forgotten(2);
    const before = forgotten.now();
    for (const key of ['A', 'B', 'C']) forgotten.forget(key);
    expect(forgotten.isSince('A', before)).toBe(true);
    expect(forgotten.isSince('OTHER', before)).toBe(true);
    expect(forgotten.isSince('OTHER', forgotten.now())).toBe(false);
  });
});
