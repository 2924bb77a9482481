// The native protocol: answers to messages, on whatever interface.
import type { PreparedDeps } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { Hits } from '../observe/hits.js';
import { type NativeAnswer, createAnswer } from './answer.js';
import { PreparedMessages } from './prepared-messages.js';
import { type ResolveParts, createResolve } from './resolve.js';
import { createSiteInfo } from './site-info.js';

interface NativeParts extends ResolveParts {
  preparing: PreparedDeps;
  hits: Hits;
}

export function createNative(
  config: Pick<Config, 'native' | 'server' | 'upstream'>,
  context: Context,
  parts: NativeParts,
): NativeAnswer {
  const site = createSiteInfo(config, parts.resolver);
  return createAnswer(context, {
    resolve: createResolve(config, context, parts),
    prepared: new PreparedMessages(context, { ...parts, site }),
    site,
  });
}
