// The README's table of metrics says what the code measures, about every metric and nothing else.
import { expect, it } from 'vitest';
import { metricRows } from '../../src/observe/metric-list.js';
import { cells, readme, tableRows } from '../support/markdown.js';

it('lists each metric once, with its type, labels and meaning', () => {
  const listed = tableRows(readme(), '| name').map(cells);
  expect(listed).toEqual(metricRows().map(cells));
});

it('names no metric that does not exist', () => {
  const known = metricRows().join('\n');
  const unknown = [...readme().matchAll(/handle_proxy_\w+/g)]
    .map(([name]) => name)
    .filter((name) => !known.includes(name));
  expect(unknown).toEqual([]);
});
