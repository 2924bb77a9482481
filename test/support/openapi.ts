// Holds requests and answers to the OpenAPI document that the proxy serves.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type OpenApiDocument, openApiDocument } from '../../src/openapi/document.js';
import type { Method, Operation, ResponseObject, Schema } from '../../src/openapi/parts.js';

export const DOCUMENT: OpenApiDocument = openApiDocument({
  version: '0.0.0',
  title: 'Handle resolver',
  has: { batch: true, v2: true, redirect: true },
  admin: { host: '127.0.0.1', port: 9090 },
});

export interface Exchange {
  method: string;
  /** Raw target. */
  target: string;
  /** What was sent. */
  sent?: string | undefined;
  status: number;
  /** Where it is known. */
  contentType?: string | undefined;
  body: string;
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });

const TEMPLATES = Object.keys(DOCUMENT.paths)
  .map((path) => ({
    path,
    pattern: new RegExp(
      `^${path.replace('{handle}', '.+').replace('{prefix}', '[^/]+').replace('{suffix}', '.+')}/?$`,
    ),
  }))
  // The one that leaves less open is meant.
  .sort(
    (one, other) =>
      one.path.split('{').length - other.path.split('{').length || other.path.length - one.path.length,
  );

/** The operation of the document for a request; undefined for one it does not describe. */
export function operationOf(method: string, target: string): Operation | undefined {
  const path = target.split('?', 1)[0] ?? '';
  const isApi = path.startsWith('/api/');
  const template = TEMPLATES.find((each) => (each.path !== '/{handle}' || !isApi) && each.pattern.test(path));
  const name = (method === 'HEAD' ? 'get' : method.toLowerCase()) as Method;
  return template && DOCUMENT.paths[template.path]?.[name];
}

/** What is wrong with the answer, by the document. */
export function complaintsAbout(exchange: Exchange): string[] {
  const operation = operationOf(exchange.method, exchange.target);
  if (operation === undefined) return [`there is no ${exchange.method} ${exchange.target}`];
  const { [exchange.status]: exact, default: other } = operation.responses;
  const response = exact ?? other;
  if (response === undefined) return [`there is no status ${exchange.status}`];
  if (exchange.body === '' || exchange.method === 'HEAD') return [];
  return complaintsAboutBody(response, exchange);
}

function complaintsAboutBody(
  { content }: ResponseObject,
  { status, contentType = 'application/json', body }: Exchange,
): string[] {
  const type = contentType.split(';', 1)[0] ?? '';
  const schema = content?.[type]?.schema;
  if (schema === undefined) return [`there is no ${type} for ${status}`];
  return type.endsWith('json') ? complaints(schema, JSON.parse(body)) : [];
}

/** What is wrong with the body that was sent, which has to be JSON. */
export function complaintsAboutRequest({ method, target, sent }: Exchange): string[] {
  const schema = operationOf(method, target)?.requestBody?.content['application/json']?.schema;
  return schema === undefined || sent === undefined ? [] : complaints(schema, JSON.parse(sent));
}

function complaints(schema: Schema, body: unknown): string[] {
  const validate = ajv.compile({ ...schema, components: DOCUMENT.components });
  if (validate(body)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message ?? ''}`);
}
