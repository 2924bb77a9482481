// Route table: finds the handler for a method and path. Compares paths as raw bytes, without decoding.
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { ErrorCode } from '../errors.js';
import type { LabelValue } from '../observe/metric-list.js';
import { type Owner, type Target, ownerOf, readTarget } from './target.js';

/** GET routes also handle HEAD. */
export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** Interface of a request, for traffic rules; a plugin may add its own. */
export type Interface = Owner | 'list' | (string & {});

/** Body schemas by media type. */
export type Content = Readonly<Record<string, z.ZodType>>;

export interface ResponseDescription {
  description: string;
  /** Header descriptions by name. */
  headers?: Readonly<Record<string, string>>;
  content?: Content;
}

/** Route description for the OpenAPI document. */
interface RouteDescription {
  summary: string;
  description?: string;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  body?: { description: string; isOptional?: boolean; content: Content; example?: unknown };
  /** Responses by status; a string describes a response without a body. */
  responses: Readonly<Record<string, ResponseDescription | string>>;
  /** Catalogue errors, each rendered as `errorContent`. */
  errors?: readonly ErrorCode[];
}

/** Properties shared by a group of routes. */
interface GroupDescription<Handler extends string> {
  /** Undefined on the admin listener. */
  interface?: Interface;
  /** Interface in metrics; defaults to that of the path. */
  family?: LabelValue<'interface'>;
  tag: { name: string; description: string };
  /** Default handler. */
  handler?: Handler;
  /** Path parameters. */
  parameters?: z.ZodObject;
  /** Common errors and responses, in addition to each route's own. */
  errors?: readonly ErrorCode[];
  responses?: RouteDescription['responses'];
  errorContent?: Content;
  /** Accepted logins; undefined if none is required. */
  security?: readonly Security[];
}

export type Security = 'none' | 'basic' | 'session' | 'adminToken';

/** An entry of `defineRoutes`, keyed by method and path. */
export interface RouteEntry<Id extends string, Handler extends string> extends RouteDescription {
  /** OpenAPI `operationId`. */
  id: Id;
  interface?: Interface;
  handler?: Handler;
  security?: readonly Security[];
  /** Whether monitoring repeats the call, which the log of the admin listener records at `debug`. */
  isRoutine?: boolean;
  /** Condition of the route. Conditional routes are tried first. */
  when?: (req: IncomingMessage, target: Target) => boolean;
}

export interface Route<Id extends string = string, Handler extends string = string>
  extends RouteEntry<Id, Handler>, Omit<GroupDescription<Handler>, 'responses' | 'errors' | 'security'> {
  method: Method;
  path: string;
  handler: Handler;
  errors: readonly ErrorCode[];
}

/**
 * Defines a group of routes. Paths are literal except for their end: `/?` tolerates a slash, `/*` matches all
 * paths below, `{name}` matches the rest of the path, `{name?}` makes it optional, and `{a}/{b}` requires a
 * separator, plain or `%2F`.
 */
export function defineRoutes<const Id extends string, const Handler extends string = Id>(
  group: GroupDescription<Handler>,
  entries: Readonly<Record<`${Method} /${string}`, RouteEntry<Id, Handler>>>,
): Route<Id, Handler>[] {
  return Object.entries(entries).map(([key, entry]) => {
    const [method, path] = key.split(' ') as [Method, string];
    // Handler defaults to Id if neither the entry nor the group has a handler.
    const handler = entry.handler ?? group.handler ?? (entry.id as unknown as Handler);
    return {
      ...group,
      ...entry,
      method,
      path,
      handler,
      errors: [...(group.errors ?? []), ...(entry.errors ?? [])],
      responses: { ...group.responses, ...entry.responses },
    };
  });
}

/** Routes at one path. */
export interface RouteMatch<R extends Route = Route> {
  /** Conditional routes first. */
  routes: readonly R[];
  /** Values of `Allow`: methods of unconditional routes, and OPTIONS. */
  allow: readonly string[];
  /** Raw parameter text; empty for a path without parameters. */
  rest: string;
}

/** A request target with its routes. */
export interface Place<R extends Route = Route> {
  target: Target;
  /** Undefined for an unknown path. */
  match: RouteMatch<R> | undefined;
}

interface OpenPath<R extends Route> extends Pick<RouteMatch<R>, 'routes' | 'allow'> {
  /** Literal part of the path. */
  head: string;
  owner: Owner;
  /** Whether the path has two parameters. */
  isPair: boolean;
}

export class RouteTable<R extends Route = Route> {
  readonly #literal = new Map<string, RouteMatch<R>>();
  readonly #open: OpenPath<R>[] = [];

  constructor(routes: readonly R[]) {
    for (const path of new Set(routes.map((route) => route.path))) {
      this.#add(
        path,
        routes.filter((route) => route.path === path),
      );
    }
    // Longest literal part first; among equal lengths, paths with two parameters first.
    this.#open.sort(
      (one, other) => other.head.length - one.head.length || Number(other.isPair) - Number(one.isPair),
    );
  }

  #add(path: string, routes: readonly R[]): void {
    const [head = ''] = /^[^{*?]+/.exec(path) ?? [];
    const end = path.slice(head.length);
    const match = matchOf(routes);
    if (/^(?:[?*]|\{\w+\?\})?$/.test(end)) this.#literal.set(head, match);
    if (/^(?:[?*]|\{\w+\?\})$/.test(end)) this.#literal.set(head.slice(0, -1), match);
    if (!/^[{*]/.test(end)) return;
    this.#open.push({ ...match, head, owner: ownerOf(head), isPair: end.includes('/') });
  }

  /** Asserts that every route has a handler. @throws Error for a missing handler */
  assertHandled(handlers: Readonly<Record<string, unknown>>): void {
    for (const { routes } of [...this.#literal.values(), ...this.#open]) {
      const missing = routes.find(({ handler }) => handlers[handler] === undefined);
      if (missing) throw new Error(`no handler ${missing.handler} for ${missing.method} ${missing.path}`);
    }
  }

  locate(rawTarget: string): Place<R> {
    const target = readTarget(rawTarget);
    return { target, match: this.at(target.path) };
  }

  /** Returns the routes at a path, if any. An open path matches only paths of the same interface. */
  at(path: string): RouteMatch<R> | undefined {
    const literal = this.#literal.get(path);
    if (literal !== undefined) return literal;
    const owner = ownerOf(path);
    for (const { head, isPair, owner: ownerOfHead, routes, allow } of this.#open) {
      if (ownerOfHead !== owner || path.length <= head.length || !path.startsWith(head)) continue;
      const rest = path.slice(head.length);
      if (!isPair || SEPARATOR.test(rest)) return { routes, allow, rest };
    }
    return undefined;
  }
}

/** Matches the separator between two parameters, but not a plain slash at the end. */
const SEPARATOR = /\/.|%2f/i;

/** Methods in the order of `Allow`. */
const ALLOWED: Readonly<Record<Method, readonly string[]>> = {
  GET: ['GET', 'HEAD'],
  POST: ['POST'],
  PUT: ['PUT'],
  DELETE: ['DELETE'],
};

function matchOf<R extends Route>(routes: readonly R[]): RouteMatch<R> {
  const plain = routes.filter(({ when }) => when === undefined);
  const methods = Object.entries(ALLOWED).flatMap(([method, allowed]) =>
    plain.some((route) => route.method === method) ? allowed : [],
  );
  return {
    routes: [...routes.filter(({ when }) => when !== undefined), ...plain],
    allow: [...methods, 'OPTIONS'],
    rest: '',
  };
}

/** Returns the first route with a matching method and condition, if any. */
export function routeFor<R extends Route>(
  { routes }: Pick<RouteMatch<R>, 'routes'>,
  req: IncomingMessage,
  target: Target,
): R | undefined {
  const method = req.method === 'HEAD' ? 'GET' : req.method;
  return routes.find((route) => route.method === method && (route.when?.(req, target) ?? true));
}

/** Whether a route with a condition takes the request. */
export const hasConditionalRoute = (table: RouteTable, req: IncomingMessage, target: Target): boolean =>
  table.at(target.path)?.routes.some(({ when }) => when?.(req, target) === true) === true;

/** Converts a route path to its OpenAPI form. */
export const documentPath = (path: string): string => path.replace(/(?<=.)\/[?*]$/, '').replace('?}', '}');
