// The state file of `warm`: it stores when each handle is due, and does not grow with each run.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openState } from '../../src/cli/warm.js';
import { newFolder } from '../support/folder.js';

const NOW = Date.parse('2026-11-23T10:00:00Z');

describe('warm state file', () => {
  test('makes a handle due at its time, or immediately if it has none', () => {
    const file = join(newFolder(), 'state');
    const first = openState(file, () => NOW);
    expect(first.isDue('21.T1/a')).toBe(true);
    first.markDone('21.T1/a', NOW + 60_000);
    first.save();
    expect(readFileSync(file, 'utf8')).toBe('21.T1/a\t2026-11-23T10:01:00.000Z\n');
    writeFileSync(file, '21.T1/old\n', { flag: 'a' });
    const isDue = (ms: number) => ['21.T1/a', '21.T1/old'].map(openState(file, () => NOW + ms).isDue);
    expect(isDue(59_999)).toEqual([false, true]);
    expect(isDue(60_000)).toEqual([true, true]);
  });

  test('uses the last line for a handle, and is compacted when most lines are outdated', () => {
    const file = join(newFolder(), 'state');
    let largest = 0;
    for (let day = 0; day < 30; day++) {
      const now = NOW + day * 86_400_000;
      const state = openState(file, () => now);
      for (const handle of ['21.T1/a', '21.T1/b']) {
        expect(state.isDue(handle)).toBe(true);
        state.markDone(handle, now + 86_400_000);
      }
      state.save();
      largest = Math.max(largest, statSync(file).size);
    }
    expect(largest).toBeLessThanOrEqual(6 * '21.T1/a\t2026-11-23T10:00:00.000Z\n'.length);
    expect(readFileSync(file, 'utf8')).toContain('2026-12-23T10:00:00.000Z');
  });

  // A tab, a line feed or invalid UTF-8 can come from the list of a server, or a URL in a file of handles.
  test.each(
    Object.entries({
      'a tab': '21.T1/a\tb',
      'a line feed': '21.T1/a\nb',
      'invalid UTF-8': '21.T1/\ufffd',
      'half a surrogate pair': '21.T1/\ud800',
      'more than 2048 bytes': `21.T1/${'x'.repeat(3000)}`,
    }),
  )('leaves out a handle with %s, because the next run could not read it', (_name, handle) => {
    const file = join(newFolder(), 'state');
    const first = openState(file, () => NOW);
    first.markDone(handle, NOW + 60_000);
    first.markDone('21.T1/a', NOW + 60_000);
    first.save();
    const second = openState(file, () => NOW);
    expect([handle, '21.T1/a'].map(second.isDue)).toEqual([true, false]);
  });
});
