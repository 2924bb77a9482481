// Checks requests and responses against the OpenAPI documents of both listeners.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { PLUGINS } from '../../src/app/plugins.js';
import { publicRoutes } from '../../src/app/public-listener.js';
import { pathsOf } from '../../src/http/route-table.js';
import type { Plugin } from '../../src/plugin.js';
import {
  type OpenApiDocument,
  type OpenApiFile,
  type Operation,
  type OperationMethod,
  type ResponseObject,
  type Schema,
  documentPath,
  servedDocument,
} from '../../src/plugins/openapi/description.js';
import adminYaml from '../../config/openapi/admin.yaml';
import publicYaml from '../../config/openapi/public.yaml';

/** The whole files. */
export const PUBLIC_FILE = publicYaml as OpenApiFile;
export const ADMIN_FILE = adminYaml as OpenApiFile;

export const ADMIN_ROUTES = PLUGINS.flatMap(({ adminRoutes = [] }) => adminRoutes);

const INFO = { version: '0.0.0', title: 'Handle resolver' };

type Interfaces = Parameters<typeof publicRoutes>[0];

const routesWith = (has: Interfaces, plugins: readonly Plugin[]) =>
  publicRoutes(
    has,
    plugins.flatMap(({ routes = [] }) => routes),
  );

/** `names`: the plugins that are on, besides that of the document. */
export const publicDocument = (has: Interfaces, names: readonly string[]): OpenApiDocument =>
  servedDocument(
    PUBLIC_FILE,
    INFO,
    routesWith(
      has,
      PLUGINS.filter(({ name }) => ['openapi', ...names].includes(name)),
    ),
  );

export const PUBLIC_ROUTES = routesWith({ v2: true, redirect: true }, PLUGINS);

/** The documents with everything switched on. */
export const DOCUMENT = servedDocument(PUBLIC_FILE, INFO, PUBLIC_ROUTES);

export const ADMIN_DOCUMENT = servedDocument(ADMIN_FILE, INFO, ADMIN_ROUTES);

export interface Exchange {
  method: string;
  /** Raw target. */
  target: string;
  /** Request body. */
  sent?: string | undefined;
  status: number;
  /** Content type of the response, if known. */
  contentType?: string | undefined;
  body: string;
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });

const PATHS = new Map([
  [DOCUMENT, pathsOf(PUBLIC_ROUTES)],
  [ADMIN_DOCUMENT, pathsOf(ADMIN_ROUTES)],
]);

/** Returns the document's operation for a request; undefined if there is none. */
export function operationOf(method: string, target: string, document = DOCUMENT): Operation | undefined {
  const [path = ''] = target.split('?', 1);
  const [route] = PATHS.get(document)?.find(({ pattern }) => pattern.test(path))?.routes ?? [];
  return route && document.paths[documentPath(route.path)]?.[method.toLowerCase() as OperationMethod];
}

/** Returns the differences between a response and the document. */
export function complaintsAbout(exchange: Exchange, document = DOCUMENT): string[] {
  const operation = operationOf(exchange.method, exchange.target, document);
  if (operation === undefined) return [`there is no ${exchange.method} ${exchange.target}`];
  const { [exchange.status]: exact, default: other } = operation.responses;
  const response = exact ?? other;
  if (response === undefined) return [`there is no status ${exchange.status}`];
  if (exchange.method === 'HEAD') return [];
  if (exchange.body === '') return response.content ? [`${exchange.status} has a body`] : [];
  // A missing login gets JSON and a wrong login an empty body, which no schema can express.
  if (exchange.status === 401 && response.content === undefined) return [];
  return complaintsAboutBody(response, exchange, document);
}

function complaintsAboutBody(
  { content }: ResponseObject,
  { status, contentType = 'application/json', body }: Exchange,
  document: OpenApiDocument,
): string[] {
  const type = contentType.split(';', 1)[0] ?? '';
  const schema = content?.[type]?.schema;
  if (schema === undefined) return [`there is no ${type} for ${status}`];
  return type.endsWith('json') ? complaints(schema, JSON.parse(body), document) : [];
}

/** Returns the differences between a JSON request body and the document. */
export function complaintsAboutRequest({ method, target, sent }: Exchange, document = DOCUMENT): string[] {
  const schema = operationOf(method, target, document)?.requestBody?.content['application/json']?.schema;
  return schema === undefined || sent === undefined ? [] : complaints(schema, JSON.parse(sent), document);
}

function complaints(schema: Schema, body: unknown, { components }: OpenApiDocument): string[] {
  const validate = ajv.compile({ ...schema, components });
  if (validate(body)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message ?? ''}`);
}
