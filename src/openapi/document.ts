// Generates a listener's OpenAPI 3.1 document from its routes.
import { z } from 'zod';
import { CATALOGUE } from '../errors.js';
import {
  type Content,
  type ResponseDescription,
  type Route,
  type Security,
  documentPath,
} from '../http/route-table.js';

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

const SECURITY_SCHEMES: Readonly<Record<Exclude<Security, 'none'>, Schema>> = {
  basic: {
    type: 'http',
    scheme: 'basic',
    description:
      'The user name is the index and handle of the user with an encoded colon, such as `300%3A21.T11998/USER01`. The Handle server must be reached over https.',
  },
  session: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: '`Handle sessionId="…"` with the id of a session from `POST /api/sessions`.',
  },
  adminToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The value of `admin.token` in the configuration.',
  },
};

export type OpenApiDocument = ReturnType<typeof createDocument>;

export function createDocument(
  info: { version: string; title: string; summary: string },
  routes: readonly Route[],
) {
  const paths: Record<string, PathItem> = {};
  const writer = new OperationWriter();
  for (const route of routes) {
    const item = (paths[documentPath(route.path)] ??= {});
    const method = route.method.toLowerCase() as OperationMethod;
    const operation = writer.write(route);
    const known = item[method];
    item[method] = known === undefined ? operation : merge(known, operation, route.when === undefined);
  }
  for (const item of Object.values(paths)) if (item.get !== undefined) item.head = headOf(item.get);
  const used = new Set<string>(routes.flatMap(({ security = [] }) => security));
  const securitySchemes = Object.entries(SECURITY_SCHEMES).filter(([name]) => used.has(name));
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    tags: [...new Map(routes.map(({ tag }) => [tag.name, tag])).values()],
    // Operations without their own `security` need no login.
    security: [{}],
    paths,
    components: { schemas: writer.schemas, securitySchemes: Object.fromEntries(securitySchemes) },
  };
}

/** Writes operations and collects named schemas. */
class OperationWriter {
  readonly schemas: Record<string, Schema> = {};

  write({ id, tag, summary, description, body, security, ...route }: Route): Operation {
    const parameters = this.#parameters(route);
    const below = route.path.endsWith('/*') ? 'Also applies to every path below.' : undefined;
    const text = [description, below].filter((part) => part !== undefined).join(' ');
    return {
      operationId: id,
      tags: [tag.name],
      summary,
      ...(text !== '' && { description: text }),
      ...(parameters.length > 0 && { parameters }),
      ...(body && {
        requestBody: {
          description: body.description,
          required: body.isOptional !== true,
          content: this.#content(body.content, body.example),
        },
      }),
      responses: this.#responses(route),
      ...(security && { security: security.map((name) => (name === 'none' ? {} : { [name]: [] })) }),
    };
  }

  #parameters({ path, parameters, query, headers }: Partial<Route>): Parameter[] {
    const inPath = this.#parametersOf('path', parameters);
    const names = [...(path ?? '').matchAll(/\{(\w+)/g)].map(([, name]) => name);
    return [
      ...names.flatMap((name) => inPath.filter((parameter) => parameter.name === name)),
      ...this.#parametersOf('query', query),
      ...this.#parametersOf('header', headers),
    ];
  }

  #parametersOf(place: Parameter['in'], object: z.ZodObject | undefined): Parameter[] {
    const { properties = {}, required = [] } = object === undefined ? {} : this.#jsonSchema(object);
    return Object.entries(properties).map(([name, property]) => {
      const { description = '', example, ...schema } = property as JsonSchema;
      return {
        name,
        in: place,
        description,
        ...(required.includes(name) && { required: true }),
        schema,
        ...(typeof example === 'string' && { example }),
      };
    });
  }

  #responses({ errors, errorContent, responses }: Pick<Route, 'errors' | 'errorContent' | 'responses'>) {
    const titles: Record<string, string> = {};
    for (const code of errors) {
      const { status, title } = CATALOGUE[code];
      titles[status] = joinTexts([titles[status], title]);
    }
    const ofErrors = mapValues(titles, (description) => ({
      description,
      ...(errorContent && { content: errorContent }),
    }));
    return mapValues({ ...ofErrors, ...responses }, (response) => this.#response(response));
  }

  #response(response: ResponseDescription | string): ResponseObject {
    if (typeof response === 'string') return { description: response };
    const { description, headers, content } = response;
    const describe = (text: string) => ({ description: text, schema: { type: 'string' } });
    return {
      description,
      ...(headers && { headers: mapValues(headers, describe) }),
      ...(content && { content: this.#content(content) }),
    };
  }

  #content(content: Content, example?: unknown): Media {
    return mapValues(content, (schema) => ({
      schema: this.#jsonSchema(schema),
      ...(example !== undefined && { example }),
    }));
  }

  #jsonSchema(validator: z.ZodType): JsonSchema {
    const { $defs = {}, ...schema } = convert(validator);
    Object.assign(this.schemas, $defs);
    return schema;
  }
}

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Uses input schemas, which allow unknown members, because Handle server bodies may have them. */
const OPTIONS: z.core.ToJSONSchemaParams = {
  io: 'input',
  unrepresentable: 'any',
  override({ jsonSchema }) {
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  },
};

/** Converted schemas by validator, because conversion dominates the time to build a document. */
const converted = new WeakMap<z.ZodType, JsonSchema>();

function convert(validator: z.ZodType): JsonSchema {
  const known = converted.get(validator);
  if (known !== undefined) return known;
  // Turns zod's references to local definitions into references to components.
  const text = JSON.stringify(z.toJSONSchema(validator, OPTIONS));
  const schema = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonSchema;
  // Removed, because OpenAPI 3.1 declares the dialect once for the whole document.
  delete schema.$schema;
  for (const definition of Object.values(schema.$defs ?? {})) delete definition.id;
  converted.set(validator, schema);
  return schema;
}

/** Joins descriptions as alternatives, without duplicates. Merged descriptions contain no other semicolons. */
function joinTexts(texts: readonly (string | undefined)[]): string {
  const parts = texts.flatMap((text) => text?.split(/; (?:or )?/) ?? []);
  const [first = '', ...others] = new Map(parts.map((text) => [lowerFirst(text), text])).values();
  const last = others.pop();
  if (last === undefined) return first;
  return `${[first, ...others.map(lowerFirst)].join('; ')}; or ${lowerFirst(last)}`;
}

/** Lower-cases the first letter unless the first word is an abbreviation. */
const lowerFirst = (text: string): string =>
  text.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());

const mapValues = <T, R>(
  from: Readonly<Record<string, T>>,
  map: (value: T, name: string) => R,
): Record<string, R> =>
  Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value, name)]));

/** Merges two routes with the same method and path, of which one is conditional. */
function merge(one: Operation, other: Operation, isOtherPlain: boolean): Operation {
  const [plain, conditional] = isOtherPlain ? [other, one] : [one, other];
  const description = [plain.description, conditional.description].filter(Boolean).join(' ');
  const parameters = mergeParameters(plain.parameters ?? [], conditional.parameters ?? []);
  const requestBody = mergeBodies(plain.requestBody, conditional.requestBody);
  return {
    ...plain,
    tags: [...new Set([...plain.tags, ...conditional.tags])],
    summary: `${plain.summary}, or ${lowerFirst(conditional.summary)}`,
    ...(description !== '' && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: {
      ...plain.responses,
      ...mapValues(conditional.responses, (response, status) =>
        mergeResponses(plain.responses[status] ?? response, response),
      ),
    },
    security: unique([...(plain.security ?? [{}]), ...(conditional.security ?? [{}])]),
  };
}

const unique = <T>(list: readonly T[]): T[] => [
  ...new Map(list.map((each) => [JSON.stringify(each), each])).values(),
];

/** Merges parameters; a merged parameter is required only if both routes require it. */
function mergeParameters(one: readonly Parameter[], other: readonly Parameter[]): Parameter[] {
  const isSame = (a: Parameter) => (b: Parameter) => a.name === b.name && a.in === b.in;
  const all = [...one, ...other.filter((parameter) => !one.some(isSame(parameter)))];
  return all.map(({ required, ...parameter }) => {
    const isRequired = [one, other].every((list) => list.find(isSame(parameter))?.required);
    return { ...parameter, ...(required && isRequired && { required }) };
  });
}

type DocumentBody = Operation['requestBody'];

function mergeBodies(one: DocumentBody, other: DocumentBody): DocumentBody {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    description: joinTexts([one.description, other.description]),
    required: one.required && other.required,
    content: { ...one.content, ...other.content },
  };
}

function mergeResponses(one: ResponseObject, other: ResponseObject): ResponseObject {
  const content: Media = { ...one.content };
  for (const [type, { schema }] of Object.entries(other.content ?? {})) {
    const schemas = unique([content[type]?.schema ?? schema, schema]);
    content[type] = { schema: schemas.length === 1 ? schema : { anyOf: schemas } };
  }
  return {
    ...one,
    description: joinTexts([one.description, other.description]),
    ...(Object.keys(content).length > 0 && { content }),
  };
}

/** Derives HEAD from GET: the same headers, but no body (RFC 9110 §9.3.2). */
const headOf = ({ operationId, summary, responses, ...get }: Operation): Operation => ({
  ...get,
  operationId: `${operationId}Head`,
  summary: `${summary} (headers only)`,
  responses: mapValues(responses, ({ description, headers }) => ({
    description,
    ...(headers && { headers }),
  })),
});
