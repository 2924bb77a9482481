// Types and builders for the parts of an OpenAPI 3.1 document.
import { CATALOGUE, type ErrorCode } from '../errors.js';

/** A JSON Schema (2020-12). */
export type Schema = Readonly<Record<string, unknown>>;

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  description: string;
  required?: boolean;
  schema: Schema;
  example?: string | number;
}

export interface ResponseObject {
  description: string;
  headers?: Record<string, { description: string; schema: Schema }>;
  content?: Record<string, { schema: Schema }>;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: {
    description: string;
    required: boolean;
    content: Record<string, { schema: Schema; example?: unknown }>;
  };
  responses: Record<string, ResponseObject>;
  security?: Record<string, string[]>[];
}

export const METHODS = ['get', 'head', 'put', 'post', 'delete'] as const;
export type Method = (typeof METHODS)[number];
export type PathItem = { [method in Method]?: Operation };
export type Paths = Record<string, PathItem>;

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const text: Schema = { type: 'string' };
export const integer: Schema = { type: 'integer' };
export const list = (items: Schema): Schema => ({ type: 'array', items });

/** An object schema; a name that ends with `?` is optional. */
export function object(properties: Record<string, Schema>): Schema {
  const names = Object.keys(properties);
  return {
    type: 'object',
    required: names.filter((name) => !name.endsWith('?')),
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [name.replace(/\?$/, ''), schema]),
    ),
  };
}

export const content = (type: string, schema: Schema): { content: Record<string, { schema: Schema }> } => ({
  content: { [type]: { schema } },
});

export const header = (description: string): { description: string; schema: Schema } => ({
  description,
  schema: text,
});

export const requestHeader = (name: string, description: string): Parameter => ({
  name,
  in: 'header',
  description,
  schema: text,
});

export const query = (name: string, description: string, schema: Schema = text): Parameter => ({
  name,
  in: 'query',
  description,
  schema,
});

export const inPath = (name: string, description: string, example: string): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: text,
  example,
});

export const PROBLEM = content('application/problem+json', ref('Problem'));

/** Responses for errors of the catalogue, one per status, with the content type of the interface. */
export function failures(
  codes: readonly ErrorCode[],
  form: Pick<ResponseObject, 'content'>,
): Record<string, ResponseObject> {
  const responses: Record<string, ResponseObject> = {};
  for (const code of codes) {
    const { status, title } = CATALOGUE[code];
    const known = responses[status]?.description;
    responses[status] = { description: known === undefined ? title : `${known}; or: ${title}`, ...form };
  }
  return responses;
}

/** The call that answers with the document. */
export const documentCall = (tag: string): PathItem => ({
  get: {
    operationId: 'readDescription',
    tags: [tag],
    summary: 'This document',
    responses: {
      200: { description: 'The document', ...content('application/json', { type: 'object' }) },
      304: { description: 'Not modified' },
      ...failures(['METHOD_REFUSED'], {}),
    },
  },
});

export const documentPageCall = (tag: string): PathItem => ({
  get: {
    operationId: 'readDescriptionPage',
    tags: [tag],
    summary: 'This document as a page',
    responses: {
      200: { description: 'The page', ...content('text/html', text) },
      303: { description: 'The call of a form' },
      304: { description: 'Not modified' },
      ...failures(['METHOD_REFUSED'], {}),
    },
  },
});
