// Makes the operator's listener: of one process, or of the primary of several.
import type { RequestListener } from 'node:http';
import { type AdminDeps, createAdminApp } from '../admin/app.js';
import { createTokenCheck } from '../admin/token.js';
import { isLoopback } from '../config/loopback.js';
import type { Parts } from './parts.js';

export function makeAdmin(
  { config, logger }: Pick<Parts, 'config' | 'logger'>,
  deps: Pick<AdminDeps, 'metrics' | 'readiness' | 'operations'>,
): RequestListener {
  return createAdminApp({
    ...deps,
    tokenCheck: createTokenCheck({ token: config.admin.token, isLoopback }),
    onCall(call, isRoutine) {
      logger[isRoutine ? 'debug' : 'info'](call, 'admin call');
    },
    onUnexpected(error) {
      logger.error({ err: error }, 'unexpected error on the admin listener');
    },
  });
}
