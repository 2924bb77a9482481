// Rows of the tables in documents that are made from the declarations of keys, metrics and errors.

/**
 * Returns the row of a key in config/keys.md.
 *
 * @param {import('../src/config/keys.js').ConfigKey} key
 */
export function keyRow({ key, variable, byDefault, description, isReloadable }) {
  const shown = byDefault === null ? 'none' : `\`${byDefault}\``;
  return `| \`${key}\` | \`${variable}\` | ${shown} | ${description}${isReloadable ? ' Reloadable.' : ''} |`;
}

/**
 * Returns the rows of the metrics table in config/metrics.md.
 *
 * @param {readonly import('../src/observe/metric-list.js').MetricEntry[]} metrics
 */
export function metricRows(metrics) {
  return metrics.map(({ name, type, labelNames = [], help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(', ') || 'none';
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
  });
}

/**
 * Returns the rows of the error table in config/troubleshooting.md.
 *
 * @param {readonly import('../src/errors.js').ErrorEntry[]} errors
 */
export const errorRows = (errors) =>
  errors.map(
    ({ code, status, responseCode, title }) => `| \`${code}\` | ${status} | ${responseCode} | ${title}. |`,
  );
