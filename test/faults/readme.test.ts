// The fault table in src/upstream/README.md, compared with the tested rows.
import { describe, expect, it } from 'vitest';
import { cells, readDocument, tableRows } from '../support/markdown.js';
import { FAULTS, type FaultRow } from './fault-table.js';

const STALE = { error: '200, `detail=error`', timeout: '200 after 1.8 s, `detail=timeout`' };

const WRITES: Record<number, string> = { 200: ', as it came', 504: ' after 30 s' };

function cellsOf(row: FaultRow): string[] {
  const asked = row.counts === 'connections' ? 'tried twice' : ['not sent', 'once', 'twice'][row.asked];
  const notKept = row.noEntry === 504 ? '504 after 10 s' : String(row.noEntry);
  const after = row.writeAfterSeconds === undefined ? WRITES[row.write] : ` after ${row.writeAfterSeconds} s`;
  return [
    row.fault,
    '200',
    STALE[row.stale],
    row.restMs === undefined ? notKept : `${notKept}, \`Retry-After\``,
    row.restMs === undefined ? (asked ?? '') : 'once, then not until the pause is over',
    row.cutsWrite ? `${row.write}, cut off` : `${row.write}${after ?? ''}`,
    row.staysFresh ? 'nothing has changed' : 'asked again',
  ];
}

describe('fault table in src/upstream/README.md', () => {
  it('has a row for every fault', () => {
    expect(
      tableRows(readDocument('src/upstream/README.md'), '| fault at the Handle server').map(cells),
    ).toEqual(FAULTS.map(cellsOf));
  });
});
