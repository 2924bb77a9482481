// All interfaces as one OpenAPI 3.1 document.
import { adminPaths } from './admin-paths.js';
import type { Paths, Schema } from './parts.js';
import { recordPaths } from './record-paths.js';
import { redirectPaths } from './redirect-paths.js';
import { componentSchemas } from './schemas.js';
import { v2Paths } from './v2-paths.js';

interface DocumentOptions {
  version: string;
  title: string;
  /** Enabled interfaces. */
  has: { batch: boolean; v2: boolean; redirect: boolean };
  /** Address of the admin listener. */
  admin: { host: string; port: number };
}

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; summary: string; license: { name: string; identifier: string } };
  servers: { url: string }[];
  tags: { name: string; description: string }[];
  paths: Paths;
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, Schema> };
}

const TAGS = {
  'Record interface': 'The interface of a Handle server.',
  'ePIC v2': 'The same handles through the ePIC API, version 2.',
  Redirect: 'Redirects and pages for browsers.',
  Admin: 'For the operator, on a separate listener.',
};

const securitySchemes: Record<string, Schema> = {
  basic: {
    type: 'http',
    scheme: 'basic',
    description: 'User name: index and handle of the user, the colon between them as %3A; over https only.',
  },
  session: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: 'Handle sessionId="…", after POST /api/sessions at the Handle server, which is passed on.',
  },
  adminToken: { type: 'http', scheme: 'bearer', description: 'admin.token of the configuration.' },
};

export function openApiDocument({ version, title, has, admin }: DocumentOptions): OpenApiDocument {
  const paths = {
    ...recordPaths(has),
    ...(has.v2 && v2Paths()),
    ...(has.redirect && redirectPaths()),
    ...adminPaths(admin),
  };
  const used = new Set(operationsOf(paths).flatMap(({ tags }) => tags));
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      summary: 'Resolve and write persistent identifiers through a caching proxy.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: { schemas: componentSchemas(has), securitySchemes },
  };
}

const operationsOf = (paths: Paths) =>
  Object.values(paths).flatMap(({ get, put, post, delete: remove }) =>
    [get, put, post, remove].filter((operation) => operation !== undefined),
  );
