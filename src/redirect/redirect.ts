// Makes the room: the routes of what people type into a browser, and the replies to their failures.
import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { RedirectDeps, RoomDeps } from './deps.js';
import { createLocationReader } from './locations.js';
import { contentSecurityPolicy } from '../html/style.js';
import { createRedirectErrorReply } from './problems.js';
import { createRedirectRoutes } from './routes.js';

export interface Redirect {
  routes: RequestHandler[];
  errorReply: ErrorRequestHandler;
}

export function createRedirect(deps: RedirectDeps): Redirect {
  const { allowedHosts, random, house } = deps;
  const room: RoomDeps = {
    ...deps,
    target: { allowedHosts, random, readLocations: createLocationReader() },
    pageHeaders: {
      'Content-Security-Policy': contentSecurityPolicy(house.logoUrl),
      'Referrer-Policy': 'no-referrer',
    },
  };
  return { routes: createRedirectRoutes(room), errorReply: createRedirectErrorReply(room) };
}
