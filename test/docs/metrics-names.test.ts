// The table of metrics in src/observe/README.md equals the code, and no document names an unknown metric.
import { describe, expect, it } from 'vitest';
import { metricRows } from '../../src/observe/metric-list.js';
import { cells, documents, readDocument, tableRows } from '../support/markdown.js';

describe('documented metrics', () => {
  it('include each metric once, with its type, labels and help text', () => {
    const listed = tableRows(readDocument('src/observe/README.md'), '| name').map(cells);
    expect(listed).toEqual(metricRows().map(cells));
  });

  /** The changelog only since the last release: earlier versions had other names. */
  const currentText = (path: string): string =>
    path === 'CHANGELOG.md'
      ? readDocument(path)
          .split(/^(?=## )/m)
          .slice(0, 2)
          .join('')
      : readDocument(path);

  it.each(documents())('%s names no unknown metric', (path) => {
    const known = metricRows().join('\n');
    const unknown = [...currentText(path).matchAll(/handle_proxy_\w+/g)]
      .map(([name]) => name)
      .filter((name) => !known.includes(name));
    expect(unknown).toEqual([]);
  });
});
