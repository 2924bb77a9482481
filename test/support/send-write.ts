// Sends writes on the production write path, without a request and a Handle server.
import type { Fence } from '../../src/cache/store.js';
import { type HandleRef, handleRef } from '../../src/handle/handle.js';
import type { Hooks } from '../../src/hooks.js';
import type { Host } from '../../src/host.js';
import { type SendWrite, createSendWrite } from '../../src/write/write.js';
import { partial } from './partial.js';

/** Creates the send function of a write of `handle`, under a fence from `raise`. */
export function createSend(
  raise: (key: string) => Promise<Fence>,
  handle: HandleRef = handleRef('21.T1/a', false),
  changed: Hooks['changed'] = [],
): SendWrite {
  const host = partial<Host>({ cache: { store: { fence: raise } }, hooks: { changed } });
  const write = {
    req: { method: 'PUT', headers: {} },
    context: { requestId: 'test', family: 'record' },
    origin: { handle, server: { readOnly: false } },
  } as const;
  return createSendWrite(host, partial<Parameters<typeof createSendWrite>[1]>(write));
}
