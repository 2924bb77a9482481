// The Helm chart: it matches the Kubernetes files, and its schema rejects unusable values.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { configKeys } from '../../src/app/config.js';
import { type ConfigMap, exampleDocuments } from '../support/examples.js';

const ROOT = new URL('../../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, ROOT), 'utf8');

const { chartFiles } = (await import(new URL('config/helm-chart.js', ROOT).href)) as {
  chartFiles: (project: unknown) => Record<string, string>;
};

const files = chartFiles(JSON.parse(read('package.json')));
const TEMPLATES = Object.keys(files).filter((name) => name.startsWith('templates/'));

interface Values {
  replicas: number;
  image: string;
  secret: string;
  env: Record<string, string>;
  redis: boolean;
  ingress: { host: string };
  networkPolicy: Record<'http' | 'admin', object[]>;
  resources: object;
}
const values = parse(read('config/helm/values.yaml')) as Values;
const [configMap] = exampleDocuments('kubernetes/configmap.yaml') as [ConfigMap];

/** Values with everything that a service may leave out. */
const ALL: Values = {
  ...values,
  env: configMap.data,
  ingress: { ...values.ingress, host: 'hdl.example.org' },
};
/** The least that a user has to set. */
const LEAST: Values = { ...values, env: { ...values.env, UPSTREAM_URL: 'https://handle.test:8000' } };

const valueOf = (path: string, given: Values): unknown =>
  path
    .split('.')
    .slice(2)
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], given);

/** Removes the lines of `if` and `end`, and those between them if no value of the condition is set. */
function withoutConditions(template: string, given: Values): string {
  const lines: string[] = [];
  let isShown = true;
  for (const line of template.split('\n')) {
    const [, condition] = /^\{\{- if (?:or )?(.*) \}\}$/.exec(line) ?? [];
    if (condition !== undefined) isShown = condition.split(' ').some((path) => Boolean(valueOf(path, given)));
    else if (line === '{{- end }}') isShown = true;
    else if (isShown) lines.push(line);
  }
  return lines.join('\n');
}

/** Renders the few Helm expressions that the templates use, and rejects any other expression. */
function render(template: string, release: string, given = ALL): unknown[] {
  const text = withoutConditions(template, given).replace(/\{\{ (.*?) \}\}/g, (_all, expression: string) => {
    if (expression === '.Release.Name') return release;
    const [, asJson, path = '', hash] =
      /^(toJson )?(\.Values(?:\.\w+)+)( \| sha256sum)?$/.exec(expression) ?? [];
    const value = path === '' ? undefined : valueOf(path, given);
    if (value === undefined) throw new Error(`cannot render ${expression}`);
    const rendered = asJson === undefined && typeof value === 'string' ? value : JSON.stringify(value);
    return hash === undefined ? rendered : createHash('sha256').update(rendered).digest('hex');
  });
  return parseAllDocuments(text, { strict: true, uniqueKeys: true })
    .map((document) => {
      for (const problem of [...document.errors, ...document.warnings]) throw problem;
      return document.toJS() as unknown;
    })
    .filter((document) => document !== null);
}

const renderAll = (release: string, given?: Values): unknown[] =>
  TEMPLATES.flatMap((name) => render(read(`config/helm/${name}`), release, given));

/** Removes the parts found only in the chart: a release label, and the hash of the ConfigMap. */
const withoutRelease = (documents: unknown[]): unknown =>
  JSON.parse(
    JSON.stringify(documents, (name, value: unknown) =>
      name === 'app.kubernetes.io/instance' ||
      (name === 'annotations' && 'checksum/config' in (value as object))
        ? undefined
        : value,
    ),
  );

describe('Helm chart', () => {
  it('matches the output of `npm run docs`', () => {
    for (const [name, text] of Object.entries(files)) expect(read(`config/helm/${name}`), name).toBe(text);
  });

  it.each(TEMPLATES)('renders %s to the Kubernetes file, with its values', (name) => {
    const documents = render(read(`config/helm/${name}`), 'handle-resolver-proxy');
    expect(withoutRelease(documents)).toEqual(exampleDocuments(name.replace('templates', 'kubernetes')));
  });

  it('names and selects every object by the release', () => {
    const all = renderAll('other');
    const names = all.map((document) => (document as { metadata: { name: string } }).metadata.name);
    expect(new Set(names)).toEqual(new Set(['other', 'other-native', 'other-admin', 'other-redis']));
    expect(JSON.stringify(all)).toContain('"serviceName":"other-redis"');
    const labels = JSON.stringify(all).match(/"app\.kubernetes\.io\/name":[^}]*/g) ?? [];
    for (const label of labels) expect(label).toContain('"app.kubernetes.io/instance":"other"');
  });

  it('opens no native port, and has no load balancer and no Ingress, unless they are set', () => {
    const shown = JSON.stringify(renderAll('other', LEAST));
    expect(shown).not.toMatch(/LoadBalancer|"Ingress","metadata"|"port":"?(?:2641|native)/);
    expect(shown).toContain('"kind":"StatefulSet"');
    expect(JSON.stringify(renderAll('other'))).toMatch(/LoadBalancer.*"port":"native-tcp"/);
  });

  it('uses the Redis of the Secret if it does not run one', () => {
    expect(JSON.stringify(renderAll('other'))).toContain('"value":"redis://other-redis:6379"');
    expect(JSON.stringify(renderAll('other', { ...ALL, redis: false }))).not.toMatch(/redis/i);
  });

  it('has no example among the default values that could be merged with those of a user', () => {
    expect(Object.keys(values.env)).toEqual(['ADMIN_HOST', 'HTTP_TRUSTED_PROXIES']);
  });

  it('is included in the package', () => {
    const { files: packed } = JSON.parse(read('package.json')) as { files: string[] };
    expect(packed).toContain('config/helm');
  });
});

describe('Helm values schema', () => {
  const validate = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false }).compile(
    JSON.parse(read('config/helm/values.schema.json')) as object,
  );

  it('accepts the default values with a Handle server, and every variable except ports and secrets', () => {
    for (const given of [LEAST, ALL]) expect(validate(given), JSON.stringify(validate.errors)).toBe(true);
    const variables = configKeys().map(({ variable }) => variable);
    const refused = variables.filter(
      (name) => !validate({ ...ALL, env: { ...ALL.env, [name]: ALL.env[name] ?? 'x' } }),
    );
    expect(refused.filter((name) => !name.startsWith('NATIVE_')).sort()).toEqual(
      ['ADMIN_PORT', 'ADMIN_TOKEN', 'PORT', 'REDIS_URL'].sort(),
    );
  });

  it.each<[string, object]>([
    ['an unknown key', { replica: 3 }],
    ['no replicas', { replicas: 0 }],
    ['a number as variable', { env: { ...ALL.env, UPSTREAM_CONCURRENCY: 10 } }],
    ['a key of the file as variable', { env: { ...ALL.env, 'upstream.url': 'https://a.example' } }],
    ['no Handle server', { env: values.env }],
    ['a Handle server without a scheme', { env: { ...ALL.env, UPSTREAM_URL: 'handle.example.org' } }],
    ['a URL as host of the Ingress', { ingress: { ...values.ingress, host: 'https://hdl.example.org' } }],
    ['a port that differs from the template', { env: { ...ALL.env, NATIVE_TCP_PORT: '2642' } }],
    ['an admin listener that probes cannot reach', { env: { ...ALL.env, ADMIN_HOST: '127.0.0.1' } }],
    ['a public port open to all', { networkPolicy: { ...values.networkPolicy, http: [] } }],
  ])('rejects %s', (_name, change) => {
    expect(validate({ ...ALL, ...change })).toBe(false);
  });
});
