// The routes of all enabled interfaces on the public listener.
import type { Config } from '../config/schema.js';
import type { Route } from '../http/route-table.js';
import { nativeRoutes } from '../native/routes.js';
import { openApiRoutes } from '../openapi/serve.js';
import { batchRoutes } from '../record/batch/routes.js';
import { endpointRoutes, reverseLookupRoutes } from '../record/relayed-routes.js';
import { recordRoutes } from '../record/routes.js';
import { redirectRoutes } from '../redirect/routes.js';
import { v2Routes } from '../v2/routes.js';

type Switch = 'batch' | 'v2' | 'redirect' | 'reverseLookup' | 'tunnel';

const DESCRIPTION = { name: 'Description', description: 'This API reference.' };

export const publicRoutes = (has: Readonly<Record<Switch, boolean>>): readonly Route[] => [
  ...recordRoutes,
  ...(has.batch ? batchRoutes : []),
  ...endpointRoutes,
  ...(has.reverseLookup ? reverseLookupRoutes : []),
  ...(has.v2 ? v2Routes : []),
  ...(has.redirect ? redirectRoutes : []),
  ...(has.tunnel ? nativeRoutes : []),
  ...openApiRoutes({ interface: 'redirect', tag: DESCRIPTION }),
];

/** Lists by the switches that are on. */
const lists = new Map<string, readonly Route[]>();

/** Returns the same list for the same interfaces, so that a reload needs not describe the routes again. */
export function routesOf({ batch, v2, redirect, reverseLookup, native }: Config): readonly Route[] {
  const has = {
    batch: batch.enabled,
    v2: v2.enabled,
    redirect: redirect.enabled,
    reverseLookup: reverseLookup.url !== undefined,
    tunnel: native.tunnel,
  };
  const key = Object.values(has).join();
  const routes = lists.get(key) ?? publicRoutes(has);
  lists.set(key, routes);
  return routes;
}
