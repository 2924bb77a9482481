// nodelete: which DELETE requests the configuration allows.
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { upperAscii } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Resolution } from '../resolver/resolution.js';
import type { ResolveOptions } from '../resolver/resolver.js';
import { bodyOfMembers } from '../http/body.js';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { sendReply } from '../http/reply.js';
import { rawHandleOf, readHandle } from '../http/target.js';

/** The configuration under `deletion`. */
interface DeletionRules {
  /** Whole handles. */
  handles: boolean;
  /** Single values (`?index=`). */
  values: boolean;
  /** Patterns of handles that may always be deleted; `*` matches any text. */
  allowedFor: readonly string[];
}

interface DeletionDeps {
  rules: DeletionRules;
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  /** Answers a DELETE that is allowed. */
  write: RequestHandler;
}

export function allowsDeletion(
  { handles, values, allowedFor }: DeletionRules,
  scope: 'handle' | 'values',
  handle: string,
): boolean {
  if (scope === 'handle' ? handles : values) return true;
  return allowedFor.some((pattern) => matches(pattern, handle));
}

/** Identifiers are meant to stay, so deletion is refused by default: 403, or 404 for a handle that does not exist. */
export function createDelete({ rules, resolve, write }: DeletionDeps): RequestHandler {
  return async function deleteRoute(req: Request, res: Response, next: NextFunction): Promise<void> {
    const context = contextOf(res);
    const handle = readHandle(rawHandleOf(context.target.path) ?? '');
    const scope = readParameters(context.target.query).has('index') ? 'values' : 'handle';
    if (allowsDeletion(rules, scope, handle)) {
      await write(req, res, next);
      return;
    }
    context.handle = handle;
    const resolution = await resolve(handle, { authoritative: false, caller: context.caller }).catch(
      () => undefined,
    );
    if (!isNotFound(resolution)) throw new ServiceError('NO_DELETE', { message: MESSAGE[scope] });
    context.result = 'refused';
    await sendReply(req, res, {
      status: 404,
      json: bodyOfMembers({ responseCode: RESPONSE_CODE.handleNotFound }, handle),
      headers: { 'Cache-Control': 'no-store' },
      gzipMinBytes: Infinity,
    });
  };
}

const MESSAGE = {
  handle: 'Deletion of handles is deactivated on this proxy (nodelete)',
  values: 'Deletion of values is deactivated on this proxy (nodelete)',
};

/** False when the upstream fails: then the reply is that for a handle that exists. */
const isNotFound = (resolution: Resolution | undefined): boolean =>
  resolution?.kind === 'entry' && resolution.entry.kind === 'not-found';

function matches(pattern: string, handle: string): boolean {
  const parts = pattern.split('*').map((part) => upperAscii(part).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`).test(upperAscii(handle));
}
