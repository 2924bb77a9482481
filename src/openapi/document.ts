// An OpenAPI 3.1 document for each listener.
import { adminPaths } from './admin-paths.js';
import { endpointPaths, reverseLookupPaths } from './endpoint-paths.js';
import { type Operation, type PathItem, type Paths, type Schema, METHODS } from './parts.js';
import { recordPaths } from './record-paths.js';
import { redirectPaths } from './redirect-paths.js';
import { SCHEMAS } from './schemas.js';
import { v2Paths } from './v2-paths.js';

interface Info {
  version: string;
  title: string;
}

interface PublicOptions extends Info {
  /** Interfaces that are on. */
  has: Record<'batch' | 'v2' | 'redirect' | 'reverseLookup' | 'tunnel', boolean>;
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: Info & { summary: string; license: { name: string; identifier: string } };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  /** Those of a call without its own: none is needed. */
  security: [Record<string, never>];
  paths: Paths;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, Schema> };
}

const TAGS = {
  'Record interface': 'The interface of a Handle server.',
  'Handle server': 'Other calls of a Handle server, relayed and never cached. HDLProxy has none of them.',
  'Reverse look-up': 'The calls of the reverse look-up service, relayed.',
  'ePIC v2': 'The same handles through the ePIC API, version 2.',
  Redirect: 'Redirects and pages for browsers.',
  'Native protocol': 'The Handle protocol over HTTP.',
  Description: 'What this listener answers.',
  Admin: 'For the operator.',
};

const LOGINS: Record<string, Schema> = {
  basic: {
    type: 'http',
    scheme: 'basic',
    description: 'User name: index and handle of the user, the colon between them as %3A; over https only.',
  },
  session: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: 'Handle sessionId="…", after POST /api/sessions.',
  },
};

const ADMIN_TOKEN: Record<string, Schema> = {
  adminToken: { type: 'http', scheme: 'bearer', description: 'admin.token of the configuration.' },
};

export function publicDocument({ has, ...info }: PublicOptions): OpenApiDocument {
  const paths = {
    ...recordPaths(has),
    ...endpointPaths,
    ...(has.reverseLookup && reverseLookupPaths),
    ...(has.v2 && v2Paths()),
    ...redirectPaths(has),
  };
  const summary = 'Resolve and write persistent identifiers through a caching proxy.';
  return createDocument({ ...info, summary }, paths, LOGINS);
}

export const adminDocument = (info: Info): OpenApiDocument =>
  createDocument(
    { ...info, summary: 'Operate a caching proxy for persistent identifiers.' },
    adminPaths,
    ADMIN_TOKEN,
  );

function createDocument(
  info: Info & { summary: string },
  described: Paths,
  securitySchemes: Record<string, Schema>,
): OpenApiDocument {
  const paths = Object.fromEntries(Object.entries(described).map(([path, item]) => [path, withHead(item)]));
  const used = new Set(operationsOf(paths).flatMap(({ tags }) => tags));
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    security: [{}],
    paths,
    components: { schemas: schemasOf(paths), securitySchemes },
  };
}

const operationsOf = (paths: Paths): Operation[] =>
  Object.values(paths).flatMap((item) => METHODS.flatMap((method) => item[method] ?? []));

/** Every GET has a HEAD: the same headers, no body (RFC 9110 §9.3.2). */
function withHead(item: PathItem): PathItem {
  if (item.get === undefined) return item;
  const { operationId, summary, responses } = item.get;
  const head: Operation = {
    ...item.get,
    operationId: `${operationId}Head`,
    summary: `The headers of: ${summary}`,
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, { description, headers }]) => [
        status,
        { description, ...(headers && { headers }) },
      ]),
    ),
  };
  return { ...item, head };
}

/** The schemas that the paths refer to, and those that they refer to. */
function schemasOf(paths: Paths): Record<string, Schema> {
  const used = new Set<string>();
  const visit = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      visit(SCHEMAS[name]);
    }
  };
  visit(paths);
  return Object.fromEntries(Object.entries(SCHEMAS).filter(([name]) => used.has(name)));
}
