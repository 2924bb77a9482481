// What an OpenAPI 3.1 document is made of, as far as ours needs it.
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

export type Method = 'get' | 'put' | 'post' | 'delete';
export type PathItem = { servers?: { url: string; description: string }[] } & {
  [method in Method]?: Operation;
};
export type Paths = Record<string, PathItem>;

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const text: Schema = { type: 'string' };

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

/** The answers to failures of the catalogue, one for each status, in the form that the interface has. */
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
