// The routes of all enabled interfaces on the public listener.
import type { Config } from './config/schema.js';
import type { Route } from './http/route-table.js';
import { nativeRoutes } from './native/routes.js';
import { openApiRoutes } from './openapi/serve.js';
import { batchRoutes } from './record/batch/routes.js';
import { endpointRoutes, reverseLookupRoutes } from './record/relayed-routes.js';
import { recordRoutes } from './record/routes.js';
import { redirectRoutes } from './redirect/routes.js';
import { v2Routes } from './v2/routes.js';

type Switch = 'batch' | 'v2' | 'redirect' | 'reverseLookup' | 'tunnel';

const DESCRIPTION = { name: 'Description', description: 'This API reference.' };

export const publicRoutes = (has: Readonly<Record<Switch, boolean>>): Route[] => [
  ...recordRoutes,
  ...(has.batch ? batchRoutes : []),
  ...endpointRoutes,
  ...(has.reverseLookup ? reverseLookupRoutes : []),
  ...(has.v2 ? v2Routes : []),
  ...(has.redirect ? redirectRoutes : []),
  ...(has.tunnel ? nativeRoutes : []),
  ...openApiRoutes({ interface: 'redirect', tag: DESCRIPTION }),
];

export const routesOf = ({ batch, v2, redirect, reverseLookup, native }: Config): Route[] =>
  publicRoutes({
    batch: batch.enabled,
    v2: v2.enabled,
    redirect: redirect.enabled,
    reverseLookup: reverseLookup.url !== undefined,
    tunnel: native.tunnel,
  });
