import { describe, expect, test } from 'vitest';
import { tableLines } from '../../src/cli/terminal.js';

describe('tables of commands', () => {
  test('aligns the columns of more rows than a call has arguments', () => {
    const rows = Array.from({ length: 300_000 }, (_, at) => [String(at), 'x']);
    const lines = tableLines(rows, [0]);
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([300_000, '     0  x', '299999  x']);
  });
});
