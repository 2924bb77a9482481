// Route table: finds the handler for a method and path. Compares paths as raw bytes, without decoding.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LabelValue } from '../observe/metric-list.js';
import { OUTSIDE_APIS, type Owner, type Target } from './target.js';

/** Handles a request, or a part of it. An error that it throws, or a rejection, becomes the response. */
export type Listener = (req: IncomingMessage, res: ServerResponse) => unknown;

/** GET routes also handle HEAD. */
type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** Interface of a request, by which judges tell requests apart; a plugin may add its own. */
export type Interface = Owner | 'list' | (string & {});

/** Properties shared by a group of routes. */
interface RouteGroup<Handler extends string> {
  /** Undefined on the admin listener. */
  interface?: Interface;
  /** Interface in metrics; defaults to that of the path. */
  family?: LabelValue<'interface'>;
  /** Defaults to the `id` of the route. */
  handler?: Handler;
  /** Whether a POST reads a handle, as a GET does. */
  isRead?: boolean;
}

/** An entry of `defineRoutes`, keyed by method and path. */
interface RouteEntry<Id extends string, Handler extends string> extends RouteGroup<Handler> {
  /** `operationId` in config/openapi. */
  id: Id;
  /** Whether the handler admits the request itself, because a hit in memory needs no admission. */
  admitsMisses?: boolean;
  /** Whether monitoring repeats the call, which the log of the admin listener records at `debug`. */
  isRoutine?: boolean;
  /** Condition of the route. Conditional routes are tried first. */
  when?: (req: IncomingMessage, target: Target) => boolean;
}

export interface Route<Id extends string = string, Handler extends string = string> extends RouteEntry<
  Id,
  Handler
> {
  method: Method;
  path: string;
  handler: Handler;
}

/**
 * Defines a group of routes; a string is an entry with this `id`. Paths are literal except for their end: `/?`
 * tolerates a slash, `/*` matches all paths below, `{name}` matches the rest of the path, `{name?}` makes it
 * optional, and `{a}/{b}` requires a separator, plain or `%2F`.
 */
export function defineRoutes<const Id extends string, const Handler extends string = Id>(
  group: RouteGroup<Handler>,
  entries: Readonly<Record<`${Method} /${string}`, Id | RouteEntry<Id, Handler>>>,
): Route<Id, Handler>[] {
  return Object.entries(entries).map(([key, given]) => {
    const [method, path] = key.split(' ') as [Method, string];
    const entry = typeof given === 'string' ? { id: given } : given;
    // Handler defaults to Id if neither the entry nor the group has a handler.
    const handler = entry.handler ?? group.handler ?? (entry.id as unknown as Handler);
    return { ...group, ...entry, method, path, handler };
  });
}

export interface RoutedPath {
  /** Matches the raw path. Has no capture groups, so that Express decodes nothing. */
  pattern: RegExp;
  /** Literal part of the path. */
  head: string;
  /** Conditional routes first. */
  routes: readonly Route[];
  /** Values of `Allow`: methods of unconditional routes, and OPTIONS. */
  allow: readonly string[];
}

/** A request target with its path. */
export interface Place {
  target: Target;
  /** Undefined for an unknown path. */
  match: RoutedPath | undefined;
}

/**
 * Returns the paths of all routes in the order in which they are matched: as listed, so that frequent ones come first,
 * but a path that another one also matches before that one.
 */
export function pathsOf(routes: readonly Route[]): readonly RoutedPath[] {
  const ordered: RoutedPath[] = [];
  for (const path of new Set(routes.map((route) => route.path))) {
    const sample = sampleOf(path);
    const at = ordered.findIndex(({ pattern }) => pattern.test(sample));
    const ofPath = routes.filter((route) => route.path === path);
    ordered.splice(at === -1 ? ordered.length : at, 0, routedPath(path, ofPath));
  }
  return ordered;
}

function routedPath(path: string, routes: readonly Route[]): RoutedPath {
  const plain = routes.filter(({ when }) => when === undefined);
  const methods = Object.entries(ALLOWED).flatMap(([method, allowed]) =>
    plain.some((route) => route.method === method) ? allowed : [],
  );
  return {
    pattern: patternOf(path),
    head: headOf(path),
    routes: [...routes.filter(({ when }) => when !== undefined), ...plain],
    allow: [...methods, 'OPTIONS'],
  };
}

/** Returns the raw parameter text of a path; empty for a path without parameters. */
export const restOf = ({ match, target }: Place): string =>
  match === undefined ? '' : target.path.slice(match.head.length);

const headOf = (path: string): string => /^[^{*?]+/.exec(path)?.[0] ?? '';

/** Whether the path has two parameters. */
const isPair = (path: string): boolean => path.includes('}/{');

/** Returns a raw path that the path matches. */
function sampleOf(path: string): string {
  const head = headOf(path);
  if (!/[{*]/.test(path)) return head;
  return isPair(path) ? `${head}x/x` : `${head}x`;
}

function patternOf(path: string): RegExp {
  const head = headOf(path);
  const end = path.slice(head.length);
  if (head === '/' && end !== '') return OUTSIDE_APIS;
  const literal = head.replace(/[.\\]/g, '\\$&');
  const base = literal.replace(/\/$/, '');
  if (end === '') return new RegExp(`^${literal}$`);
  if (end === '?') return new RegExp(`^${base}/?$`);
  if (end === '*' || end.endsWith('?}')) return new RegExp(`^${base}(?:/[^]*)?$`);
  // A plain slash at the end separates nothing.
  return new RegExp(isPair(path) ? `^${literal}(?=[^]*(?:/.|%2[fF]))` : `^${literal}(?=[^])`);
}

/** Returns GET for HEAD, whose errors are those of GET too: their headers must be equal (RFC 9110 §9.3.2). */
export const routedMethod = ({ method = '' }: IncomingMessage): string =>
  method === 'HEAD' ? 'GET' : method;

/** Methods in the order of `Allow`. */
const ALLOWED: Readonly<Record<Method, readonly string[]>> = {
  GET: ['GET', 'HEAD'],
  POST: ['POST'],
  PUT: ['PUT'],
  DELETE: ['DELETE'],
};
