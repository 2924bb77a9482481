// The Helm chart: it matches the Kubernetes files, and its schema rejects unusable values.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { configKeys } from '../../src/app/config.js';
import { exampleDocuments } from '../support/examples.js';

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
  networkPolicy: Record<'http' | 'admin', object[]>;
  resources: object;
}
const values = parse(read('config/helm/values.yaml')) as Values;

/** Renders the few Helm expressions that the templates use, and rejects any other expression. */
function render(template: string, release: string): unknown[] {
  const text = template.replace(/\{\{ (.*?) \}\}/g, (_all, expression: string) => {
    if (expression === '.Release.Name') return release;
    const [, asJson, path = '', hash] =
      /^(toJson )?\.Values((?:\.\w+)+)( \| sha256sum)?$/.exec(expression) ?? [];
    const value = path
      .slice(1)
      .split('.')
      .reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], values);
    if (path === '' || value === undefined) throw new Error(`cannot render ${expression}`);
    const rendered = asJson === undefined && typeof value === 'string' ? value : JSON.stringify(value);
    return hash === undefined ? rendered : createHash('sha256').update(rendered).digest('hex');
  });
  return parseAllDocuments(text, { strict: true, uniqueKeys: true }).map((document) => {
    for (const problem of [...document.errors, ...document.warnings]) throw problem;
    return document.toJS() as unknown;
  });
}

/** Removes the parts found only in the chart: a release label, and the hash of the ConfigMap. */
const withoutRelease = (documents: unknown[]): unknown =>
  JSON.parse(
    JSON.stringify(documents, (name, value: unknown) =>
      name === 'app.kubernetes.io/instance' || name === 'annotations' ? undefined : value,
    ),
  );

describe('Helm chart', () => {
  it('matches the output of `npm run docs`', () => {
    for (const [name, text] of Object.entries(files)) expect(read(`config/helm/${name}`), name).toBe(text);
  });

  it.each(TEMPLATES)('renders %s with default values to the Kubernetes file', (name) => {
    const documents = render(read(`config/helm/${name}`), 'handle-resolver-proxy');
    expect(withoutRelease(documents)).toEqual(exampleDocuments(name.replace('templates', 'kubernetes')));
  });

  it('names and selects every object by the release', () => {
    const all = TEMPLATES.flatMap((name) => render(read(`config/helm/${name}`), 'other'));
    const names = all.map((document) => (document as { metadata: { name: string } }).metadata.name);
    expect(new Set(names)).toEqual(new Set(['other', 'other-native', 'other-admin']));
    const labels = JSON.stringify(all).match(/"app\.kubernetes\.io\/name":[^}]*/g) ?? [];
    for (const label of labels) expect(label).toContain('"app.kubernetes.io/instance":"other"');
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

  it('accepts the default values, and every variable except ports and secrets', () => {
    expect(validate(values), JSON.stringify(validate.errors)).toBe(true);
    const variables = configKeys().map(({ variable }) => variable);
    const refused = variables.filter(
      (name) => !validate({ ...values, env: { ...values.env, [name]: values.env[name] ?? 'x' } }),
    );
    expect(refused.filter((name) => !name.startsWith('NATIVE_')).sort()).toEqual(
      ['ADMIN_PORT', 'ADMIN_TOKEN', 'PORT', 'REDIS_URL'].sort(),
    );
  });

  it.each<[string, object]>([
    ['an unknown key', { replica: 3 }],
    ['no replicas', { replicas: 0 }],
    ['a number as variable', { env: { ...values.env, UPSTREAM_CONCURRENCY: 10 } }],
    ['a key of the file as variable', { env: { ...values.env, 'upstream.url': 'https://a.example' } }],
    ['no Handle server', { env: {} }],
    ['a port that differs from the template', { env: { ...values.env, NATIVE_TCP_PORT: '2642' } }],
    ['an admin listener that probes cannot reach', { env: { ...values.env, ADMIN_HOST: '127.0.0.1' } }],
    ['a public port open to all', { networkPolicy: { ...values.networkPolicy, http: [] } }],
  ])('rejects %s', (_name, change) => {
    expect(validate({ ...values, ...change })).toBe(false);
  });
});
