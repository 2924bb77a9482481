import { describe, expect, test } from 'vitest';
import { tableLines } from '../../src/cli/terminal.js';

describe('tables of commands', () => {
  test('aligns the columns of more rows than a call has arguments', () => {
    const rows = Array.from({ length: 300_000 }, (_, at) => [String(at), 'x']);
    const lines = tableLines(rows, [0]);
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([300_000, '     0  x', '299999  x']);
  });

  test('does not lengthen each row to a cell of thousands of characters', () => {
    const long = 'W'.repeat(300_000);
    const rows = [['type', 'data'], [long, 'x'], ...Array.from({ length: 20_000 }, () => ['T', 'x'])];
    const lines = tableLines(rows);
    expect(lines[1]).toBe(`${long}  x`);
    expect(lines[2]).toBe(`T${' '.repeat(81)}x`);
    expect(lines.join('\n').length).toBeLessThan(2_000_000);
  });
});
