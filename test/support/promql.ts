// Extracts metrics and labels from Prometheus expressions, with just enough PromQL for the files in config.
import { allMetrics } from '../../src/app/plugins.js';
import type { MetricEntry } from '../../src/observe/metric-list.js';

export interface Used {
  metric: string;
  labels: string[];
}

/** Labels that Prometheus adds to every series. */
const OF_THE_TARGET = ['job', 'instance'];

const own = new Map<string, MetricEntry>(allMetrics().map((entry) => [entry.name, entry]));

/** Returns the series in an expression, each with its selector's labels. */
export function selected(expression: string): Used[] {
  return [...expression.matchAll(/\b((?:handle_proxy|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', selector = '']) => ({
      metric,
      labels: [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
    }),
  );
}

/** Returns the labels in `by (…)`. */
export function groupedBy(expression: string): string[] {
  return [...expression.matchAll(/\bby\s*\(([^)]*)\)/g)].flatMap(([, names = '']) =>
    names.split(',').map((name) => name.trim()),
  );
}

const namesOf = ({ labelNames = [] }: MetricEntry): readonly string[] => labelNames;

/**
 * Returns a series's labels; undefined for an unknown series. `process` contains the names of Node's default
 * metrics.
 */
export function labelsOf(series: string, process: ReadonlySet<string>): string[] | undefined {
  if (series === 'up' || process.has(series)) return OF_THE_TARGET;
  const exact = own.get(series);
  if (exact !== undefined && exact.type !== 'histogram') return [...OF_THE_TARGET, ...namesOf(exact)];
  const [, base = '', part] = /^(\w+)_(bucket|sum|count)$/.exec(series) ?? [];
  const histogram = own.get(base);
  if (histogram?.type !== 'histogram') return undefined;
  return [...OF_THE_TARGET, ...namesOf(histogram), ...(part === 'bucket' ? ['le'] : [])];
}
