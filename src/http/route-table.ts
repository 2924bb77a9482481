// The route table: finds the handler of a method and a path. Paths are raw bytes and are not decoded.
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { ErrorCode } from '../errors.js';
import { type Owner, type Target, ownerOf, readTarget } from './target.js';

/** The route of GET also handles HEAD. */
export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** The interface of a request, for traffic rules and metrics. */
export type Interface = Owner | 'list' | 'batch' | 'native';

/** Schemas of a body by media type. */
export type Content = Readonly<Record<string, z.ZodType>>;

export interface ResponseDescription {
  description: string;
  /** Descriptions of headers by name. */
  headers?: Readonly<Record<string, string>>;
  content?: Content;
}

/** Description of a route for the OpenAPI document. */
interface RouteDescription {
  summary: string;
  description?: string;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  body?: { description: string; isOptional?: boolean; content: Content; example?: unknown };
  /** Responses by status; a string describes a response without a body. */
  responses: Readonly<Record<string, ResponseDescription | string>>;
  /** Errors of the catalogue, each in `errorContent`. */
  errors?: readonly ErrorCode[];
}

/** Properties that the routes of a group share. */
interface GroupDescription<Handler extends string> {
  /** Missing on the admin listener. */
  interface?: Interface;
  tag: { name: string; description: string };
  /** Default handler. */
  handler?: Handler;
  /** Parameters of paths. */
  parameters?: z.ZodObject;
  /** Errors and responses of every route, in addition to its own. */
  errors?: readonly ErrorCode[];
  responses?: RouteDescription['responses'];
  errorContent?: Content;
  /** Accepted logins; undefined if no login is needed. */
  security?: readonly Security[];
}

export type Security = 'none' | 'basic' | 'session' | 'adminToken';

/** An entry of `defineRoutes`; its key is the method and the path. */
export interface RouteEntry<Id extends string, Handler extends string> extends RouteDescription {
  /** The `operationId` of the document. */
  id: Id;
  interface?: Interface;
  handler?: Handler;
  security?: readonly Security[];
  /** Condition of the route. Routes with a condition are tried before those without. */
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
 * Defines the routes of a group. A path is literal except for its end: `/?` tolerates a slash, `/*` matches every path
 * below, `{name}` the rest of the path, `{name?}` may be missing, `{a}/{b}` needs a separator, plain or `%2F`.
 */
export function defineRoutes<const Id extends string, const Handler extends string = Id>(
  group: GroupDescription<Handler>,
  entries: Readonly<Record<`${Method} /${string}`, RouteEntry<Id, Handler>>>,
): Route<Id, Handler>[] {
  return Object.entries(entries).map(([key, entry]) => {
    const [method, path] = key.split(' ') as [Method, string];
    // Without a handler in entry and group, Handler is Id.
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

/** The routes at a path. */
export interface RouteMatch<R extends Route = Route> {
  /** Routes with a condition come first. */
  routes: readonly R[];
  /** Values of `Allow`: the methods of routes without a condition, and OPTIONS. */
  allow: readonly string[];
  /** The raw text of the parameters; empty if the path has none. */
  rest: string;
}

/** A request target and its routes. */
export interface Place<R extends Route = Route> {
  target: Target;
  /** Undefined if no route has this path. */
  match: RouteMatch<R> | undefined;
}

interface OpenPath<R extends Route> extends Pick<RouteMatch<R>, 'routes' | 'allow'> {
  /** The literal part of the path. */
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
    // The longest literal part first; at equal length the path with two parameters first.
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

  /** @throws Error when a route has an unknown handler */
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

  /** Undefined if no route has this path. An open path matches only paths of the same interface. */
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

/** Separator of two parameters. A plain slash at the end does not count. */
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

/** The first route whose method and condition match; undefined if none does. */
export function routeFor<R extends Route>(
  { routes }: Pick<RouteMatch<R>, 'routes'>,
  req: IncomingMessage,
  target: Target,
): R | undefined {
  const method = req.method === 'HEAD' ? 'GET' : req.method;
  return routes.find((route) => route.method === method && (route.when?.(req, target) ?? true));
}

/** The path in the OpenAPI document. */
export const documentPath = (path: string): string => path.replace(/(?<=.)\/[?*]$/, '').replace('?}', '}');
