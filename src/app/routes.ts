// The routes of all enabled interfaces on the public listener.
import type { Config } from '../config/schema.js';
import type { Route } from '../http/route-table.js';
import { endpointRoutes, recordRoutes } from '../record/routes.js';
import type { Plugin } from './plugin.js';
import { redirectRoutes } from '../redirect/redirect.js';
import { v2Routes } from '../v2/answer.js';

type Switch = 'v2' | 'redirect';

export const publicRoutes = (
  has: Readonly<Record<Switch, boolean>>,
  ofPlugins: readonly Route[],
): readonly Route[] => [
  ...recordRoutes,
  ...endpointRoutes,
  ...(has.v2 ? v2Routes : []),
  ...(has.redirect ? redirectRoutes : []),
  ...ofPlugins,
];

/** Returns the routes of the enabled interfaces. */
export const routesOf = (config: Config, plugins: readonly Plugin[]): readonly Route[] =>
  publicRoutes(
    { v2: config.v2.enabled, redirect: config.redirect.enabled },
    plugins.flatMap((plugin) => plugin.routes?.(config) ?? []),
  );
