// The routes of all enabled interfaces on the public listener.
import type { Config } from '../config/schema.js';
import type { Route } from '../http/route-table.js';
import { openApiRoutes } from '../openapi/serve.js';
import { endpointRoutes } from '../record/relayed-routes.js';
import { recordRoutes } from '../record/routes.js';
import type { Plugin } from './plugin.js';
import { redirectRoutes } from '../redirect/routes.js';
import { v2Routes } from '../v2/routes.js';

type Switch = 'v2' | 'redirect';

const DESCRIPTION = { name: 'Description', description: 'This API reference.' };

export const publicRoutes = (
  has: Readonly<Record<Switch, boolean>>,
  ofPlugins: readonly Route[],
): readonly Route[] => [
  ...recordRoutes,
  ...endpointRoutes,
  ...(has.v2 ? v2Routes : []),
  ...(has.redirect ? redirectRoutes : []),
  ...ofPlugins,
  ...openApiRoutes({ interface: 'redirect', tag: DESCRIPTION }),
];

/** Lists by the ids of their routes. */
const lists = new Map<string, readonly Route[]>();

/** Returns the same list for the same interfaces, so that a reload needs not describe the routes again. */
export function routesOf(config: Config, plugins: readonly Plugin[]): readonly Route[] {
  const { v2, redirect } = config;
  const has = {
    v2: v2.enabled,
    redirect: redirect.enabled,
  };
  const routes = publicRoutes(
    has,
    plugins.flatMap((plugin) => plugin.routes?.(config) ?? []),
  );
  const key = routes.map(({ id }) => id).join();
  const known = lists.get(key) ?? routes;
  lists.set(key, known);
  return known;
}
