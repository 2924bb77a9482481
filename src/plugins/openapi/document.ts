// The OpenAPI 3.1 document of a listener: one of config/openapi, limited to the routes that are served.
import type { Route } from '../../http/route-table.js';

/** A JSON Schema (2020-12). */
export type Schema = Readonly<Record<string, unknown>>;

interface Described {
  description: string;
}

/** Schemas and examples by media type. */
type Media = Record<string, { schema: Schema; example?: unknown }>;

export interface Parameter extends Described {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
  example?: string;
}

export interface ResponseObject extends Described {
  headers?: Record<string, Described & { schema: Schema }>;
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

/**
 * Returns the document with this title and version, for the operations that a route serves, by default all, and
 * with a HEAD for each GET. If a single route serves a method and path that others share, its own operation
 * replaces theirs.
 */
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
    responses: mapValues(responses, ({ description, headers }) => ({
      description,
      ...(headers && { headers }),
    })),
  };
  return { ...item, head };
}

const mapValues = <T, R>(from: Readonly<Record<string, T>>, map: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]));
