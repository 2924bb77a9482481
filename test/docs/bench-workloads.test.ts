// test/bench/README.md describes every workload of the bench.
import { expect, test } from 'vitest';
import { WORKLOADS } from '../bench/plan.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

test('the table of workloads has a row for each, in their order', () => {
  const rows = tableRows(readDocument('test/bench/README.md'), '| workload').map(cells);
  expect(rows.map(([name]) => name)).toEqual(WORKLOADS.map((name) => `\`${name}\``));
});
