// Alert rules and dashboard: they use existing metrics, and Prometheus accepts both.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { metricsOf } from '../../src/app/load-plugins.js';
import { PLUGINS } from '../../src/app/plugins.js';
import { createMetrics } from '../../src/observe/metrics.js';
import { itWithProgram, runProgram } from '../support/programs.js';
import { groupedBy, labelsOf, selected } from '../support/promql.js';

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations?: { summary: string; description: string };
}
interface Rules {
  groups: { name: string; rules: Rule[] }[];
}
interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}
interface Dashboard {
  panels: Panel[];
  templating: { list: { name: string; query: string | { query: string } }[] };
}

const fileOf = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const textOf = (name: string): string => readFileSync(fileOf(name), 'utf8');
const ALERTS = 'config/prometheus/alerts.yaml';
const { groups } = parse(textOf(ALERTS)) as Rules;
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(textOf('config/grafana/handle-resolver-proxy.json')) as Dashboard;
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }): [string, string] => [title, expr]),
);

const exposition = await createMetrics().exposition();
const ofProcess = new Set(
  [...exposition.matchAll(/^# TYPE ((?:process|nodejs)_\w+)/gm)].map(([, name = '']) => name),
);

/** Writes a file for promtool, and removes it at the end of the test. */
function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const path = join(folder, 'rules.yaml');
  writeFileSync(path, text);
  return path;
}

describe.each([
  ...rules.map(({ alert, expr }): [string, string] => [`alert ${alert}`, expr]),
  ...queries.map(([title, expr]): [string, string] => [`panel ${title}`, expr]),
])('%s', (_name, expr) => {
  it('uses existing metrics and labels', () => {
    const used = selected(expr);
    expect(used).not.toEqual([]);
    const known = used.map(({ metric }) => labelsOf(metric, ofProcess));
    for (const [at, { metric, labels }] of used.entries()) {
      expect(known[at], `there is no metric ${metric}`).toBeDefined();
      expect(known[at]).toEqual(expect.arrayContaining(labels));
    }
    expect(known.flat()).toEqual(expect.arrayContaining(groupedBy(expr)));
  });
});

describe('Prometheus alerts', () => {
  it('have a severity, a summary and a description', () => {
    for (const { labels, annotations } of rules) {
      expect(['page', 'ticket']).toContain(labels.severity);
      expect(annotations?.summary).not.toBe('');
      expect(annotations?.description).not.toBe('');
    }
  });

  itWithProgram('promtool', 'pass promtool check rules', () => {
    const { code, output } = runProgram('promtool', ['check', 'rules', '--lint-fatal', fileOf(ALERTS)]);
    expect(output).toContain(`${rules.length} rules found`);
    expect(code).toBe(0);
  });

  itWithProgram('promtool', 'fire as specified in alerts.promtool.yaml', () => {
    // This promtool version also compares annotations, which are irrelevant here.
    for (const rule of rules) delete rule.annotations;
    const rulesFile = fileWith(stringify({ groups }));
    const series = textOf('test/rollout/alerts.promtool.yaml').replaceAll('{{rules}}', rulesFile);
    const { code, output } = runProgram('promtool', ['test', 'rules', fileWith(series)]);
    expect(output).toContain('SUCCESS');
    expect(code).toBe(0);
  });

  it('each have a promtool test', () => {
    const played = textOf('test/rollout/alerts.promtool.yaml');
    expect(rules.filter(({ alert }) => !played.includes(`alertname: ${alert}\n`))).toEqual([]);
  });
});

describe('Grafana dashboard', () => {
  it('shows every metric', () => {
    const shown = queries.flatMap(([, expr]) => selected(expr)).map(({ metric }) => metric);
    const names = [...exposition.matchAll(/^# TYPE (handle_proxy_\w+) (\w+)/gm)];
    const missing = names
      .map(([, name = '', type]) => (type === 'histogram' ? `${name}_bucket` : name))
      .filter((name) => !shown.includes(name));
    expect(missing).toEqual([]);
  });

  it('has unique panel ids and no overlapping panels', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });

  it('uses only the variables that it defines', () => {
    const chosen = dashboard.templating.list.map(({ name }) => name);
    const used = [...JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)].map(([, name]) => name);
    expect([...new Set(used)].filter((name) => name !== '__rate_interval').sort()).toEqual(chosen.sort());
  });

  itWithProgram('promtool', 'has only expressions that Prometheus accepts', () => {
    const group = queries.map(([, expr], at) => ({
      record: `panel:query_${at}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }));
    const path = fileWith(stringify({ groups: [{ name: 'dashboard', rules: group }] }));
    const { code, output } = runProgram('promtool', ['check', 'rules', path]);
    expect(output).toContain(`${queries.length} rules found`);
    expect(code).toBe(0);
  });
});

describe('exported metrics', () => {
  itWithProgram('promtool', 'have names that promtool accepts', async () => {
    const metrics = createMetrics();
    metrics.add(metricsOf(PLUGINS));
    metrics.countRequest({ interface: 'record', result: 'miss', status: 200, ms: 3 });
    metrics.countUpstreamRequest({ server: 'http://a', outcome: 'found', ms: 3 });
    const text = await metrics.exposition();
    expect(runProgram('promtool', ['check', 'metrics'], text)).toEqual({ code: 0, output: '' });
  });
});
