// The metrics table in config/metrics.md matches the code, and no document names an unknown metric.
import { describe, expect, it } from 'vitest';
import { allMetrics } from '../../src/app/plugins.js';
import type { MetricEntry } from '../../src/observe/metric-list.js';
import { cells, documents, readDocument, tableRows } from '../support/markdown.js';

const { metricRows } = (await import(new URL('../../config/table-rows.js', import.meta.url).href)) as {
  metricRows: (metrics: readonly MetricEntry[]) => string[];
};

describe('documented metrics', () => {
  it('include each metric once, with its type, labels and help text', () => {
    const listed = tableRows(readDocument('config/metrics.md'), '| name').map(cells);
    expect(listed).toEqual(metricRows(allMetrics()).map(cells));
  });

  /** Reads the changelog only up to the previous release, because metrics had different names before. */
  const currentText = (path: string): string =>
    path === 'CHANGELOG.md'
      ? readDocument(path)
          .split(/^(?=## )/m)
          .slice(0, 2)
          .join('')
      : readDocument(path);

  it.each(documents())('exist in the code: %s', (path) => {
    const known = metricRows(allMetrics()).join('\n');
    const unknown = [...currentText(path).matchAll(/handle_proxy_\w+/g)]
      .map(([name]) => name)
      .filter((name) => !known.includes(name));
    expect(unknown).toEqual([]);
  });
});
