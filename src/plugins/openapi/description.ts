// The responses of a document: its JSON, and its page with the forms.
import { VERSION } from '../../config/package-files.js';
import { html, type Html, type SitePage } from '../../html/html.js';
import type { Route } from '../../http/route-table.js';

export type Description = Awaited<ReturnType<typeof describeListener>>;

const FILES = {
  public: () => import('../../../config/openapi/public.yaml'),
  admin: () => import('../../../config/openapi/admin.yaml'),
};

/** `routes`: those of the listener, by default all that its file describes. */
export async function describeListener(
  listener: keyof typeof FILES,
  title: string,
  routes?: readonly Route[],
) {
  const { default: file } = await FILES[listener]();
  const document = servedDocument(file as OpenApiFile, { title, version: VERSION }, routes);
  return {
    text: JSON.stringify(document),
    page: documentPage(document),
    tryUrl: (given: URLSearchParams) => tryUrl(document, given),
  };
}

/** Renders the OpenAPI document as a page with a form for every GET. */
function documentPage({ info, tags, paths }: OpenApiDocument): SitePage {
  const entries = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      // Omits HEAD, which GET describes too.
      return operation === undefined || method === 'head' ? [] : [{ path, method, operation }];
    }),
  );
  const groups = tags.map(({ name, description }): OperationGroup => ({
    name,
    description,
    anchor: `tag-${name.replace(/\W+/g, '-')}`,
    operations: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
  return {
    title: 'API',
    main: html`<h1>API</h1>
      <p>
        ${info.summary} Version ${info.version}. Machine-readable:
        <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).
      </p>
      <nav aria-labelledby="contents">
        <h2 id="contents">Contents</h2>
        <ul>
          ${groups.map(renderContents)}
        </ul>
      </nav>
      ${groups.map(
        ({ name, description, anchor, operations }) =>
          html`<h2 id="${anchor}">${name}</h2>
            <p class="quiet">${description}</p>
            ${operations.map((each) => renderUnderTag(each, name))}`,
      )}`,
  };
}

interface OperationGroup {
  name: string;
  description: string;
  anchor: string;
  operations: readonly PageOperation[];
}

const renderContents = ({ name, anchor, operations }: OperationGroup): Html =>
  html`<li>
    <a href="#${anchor}">${name}</a>
    <ul>
      ${operations.map((each) => html`<li>${linkToOperation(each)}</li>`)}
    </ul>
  </li>`;

const linkToOperation = ({ path, method, operation: { operationId, summary } }: PageOperation): Html =>
  html`<a href="#${operationId}"><code>${method.toUpperCase()} ${path}</code></a> ${withCode(summary)}`;

/** Links from further tags to the section under the first tag, because ids are unique. */
const renderUnderTag = (each: PageOperation, name: string): Html =>
  each.operation.tags[0] === name ? renderOperation(each) : html`<p>${linkToOperation(each)}</p>`;

interface PageOperation {
  path: string;
  method: OperationMethod;
  operation: Operation;
}

function renderOperation({ path, method, operation }: PageOperation): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const examples = Object.entries(requestBody?.content ?? {});
  return html`<section id="${operationId}">
    <h3><code>${method.toUpperCase()} ${path}</code></h3>
    <p>${withCode(summary)}. ${description === undefined ? undefined : withCode(description)}</p>
    ${method === 'get' ? tryForm(operation) : undefined}
    <details>
      <summary>Parameters and responses</summary>
      ${parameters.length === 0 ? undefined : html`<dl>${parameters.map(renderParameter)}</dl>`}
      ${examples.map(
        ([type, { example }]) =>
          html`<p>Request body (<code>${type}</code>): ${withCode(requestBody?.description ?? '')}.</p>
            ${example === undefined ? undefined : html`<pre>${JSON.stringify(example, undefined, 2)}</pre>`}`,
      )}
      <dl>${Object.entries(responses).map(renderResponse)}</dl>
    </details>
  </section>`;
}

/** Renders text between backticks as code. */
const withCode = (words: string): Html =>
  html`${words.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`;

const renderParameter = ({ name, in: place, description }: Parameter): Html =>
  html`<dt><code>${name}</code> (${place})</dt>
    <dd>${withCode(description)}</dd>`;

const renderResponse = ([status, { description }]: [string, ResponseObject]): Html =>
  html`<dt>${status === 'default' ? 'other' : status}</dt>
    <dd>${withCode(description)}</dd>`;

function tryForm({ operationId, parameters = [] }: Operation): Html {
  const fields = parameters.filter(({ in: place }) => place !== 'header');
  const render = (each: Parameter): Html => renderField(operationId, each);
  const optional = fields.filter(({ required }) => required !== true);
  return html`<form action="/openapi" method="get">
    <input type="hidden" name="try" value="${operationId}" />
    ${fields.filter(({ required }) => required).map(render)}
    <button class="button main">Try it</button>
    ${
      optional.length === 0
        ? undefined
        : html`<details>
            <summary>Optional parameters</summary>
            ${optional.map(render)}
          </details>`
    }
  </form>`;
}

function renderField(operationId: string, { name, in: place, required, example }: Parameter): Html {
  const id = `${operationId}-${place}-${name}`;
  const field = `${place}.${name}`;
  return required === true
    ? html`<label for="${id}">${name}</label>
        <input id="${id}" name="${field}" value="${example}" required autocomplete="off" />`
    : html`<label class="quiet" for="${id}">${name}</label>
        <input id="${id}" name="${field}" autocomplete="off" />`;
}

/** Returns the URL that a form calls, on this host, because every field is percent-encoded. */
function tryUrl({ paths }: OpenApiDocument, given: URLSearchParams): string | undefined {
  const operationId = given.get('try');
  const entry = Object.entries(paths).find(([, item]) => item.get?.operationId === operationId);
  if (entry === undefined) return undefined;
  const [template, { get }] = entry;
  if (get === undefined) return undefined;
  const path = template.replace(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(given.get(`path.${name}`) ?? ''),
  );
  const query = new URLSearchParams();
  for (const { name } of get.parameters?.filter(({ in: place }) => place === 'query') ?? []) {
    for (const value of given.getAll(`query.${name}`)) if (value !== '') query.append(name, value);
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

export type Schema = Readonly<Record<string, unknown>>;

interface Described {
  description: string;
}

/** Schemas and examples by media type. */
type Media = Record<string, { schema: Schema; example?: unknown }>;

interface Parameter extends Described {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
  example?: string;
}

export interface ResponseObject extends Described {
  content?: Media;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: Described & { required: boolean; content: Media };
  responses: Record<string, ResponseObject>;
  security?: Record<string, string[]>[];
}

/** Methods in the page's order. */
export const METHODS = ['get', 'head', 'put', 'post', 'delete'] as const;
export type OperationMethod = (typeof METHODS)[number];
type PathItem = { [method in OperationMethod]?: Operation };

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; summary: string; version: string };
  tags: (Described & { name: string })[];
  paths: Record<string, PathItem>;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, Schema> };
}

/** A file of config/openapi. */
export interface OpenApiFile extends OpenApiDocument {
  'x-alone'?: Record<string, Operation>;
}

/** Returns the document of the routes. An operation alone on a path that others may share replaces theirs. */
export function servedDocument(
  { 'x-alone': alone = {}, ...file }: OpenApiFile,
  info: { title: string; version: string },
  routes?: readonly Route[],
): OpenApiDocument {
  const paths: Record<string, PathItem> = {};
  for (const [path, item] of Object.entries(file.paths)) {
    const ofPath = routes?.filter((route) => documentPath(route.path) === path);
    const served = ofPath === undefined ? item : servedItem(item, ofPath, alone);
    if (Object.keys(served).length > 0) paths[path] = withHead(served);
  }
  const operations = Object.values(paths).flatMap((item) => Object.values(item));
  const tags = new Set(operations.flatMap((operation) => operation.tags));
  return {
    ...file,
    info: { ...file.info, ...info },
    tags: file.tags.filter(({ name }) => tags.has(name)),
    paths,
  };
}

function servedItem(item: PathItem, routes: readonly Route[], alone: Record<string, Operation>): PathItem {
  const served = Object.entries(item).flatMap(([method, operation]) => {
    const [route, ...others] = routes.filter((each) => each.method.toLowerCase() === method);
    if (route === undefined) return [];
    return [[method, (others.length === 0 ? alone[route.id] : undefined) ?? operation] as const];
  });
  return Object.fromEntries(served);
}

/** Converts a route path to its OpenAPI form. */
export const documentPath = (path: string): string => path.replace(/(?<=.)\/[?*]$/, '').replace('?}', '}');

/** Adds HEAD to GET: the same headers, but no body (RFC 9110 §9.3.2). */
function withHead(item: PathItem): PathItem {
  if (item.get === undefined) return item;
  const { operationId, summary, responses, ...get } = item.get;
  const head = {
    ...get,
    operationId: `${operationId}Head`,
    summary: `${summary} (headers only)`,
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, { content: _body, ...rest }]) => [status, rest]),
    ),
  };
  return { ...item, head };
}
