// What the bodies of the admin API may say.
import { z } from 'zod';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { LOG_LEVELS } from '../observe/logger.js';
import type { PurgeOrder } from './operations.js';

/** One request must not keep a process busy for long: more are sent in several. */
export const MOST_HANDLES = 10_000;

const handle = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'is no handle');
const soft = z.boolean().optional().describe('Keep it as a stand-in for an upstream that fails.');

export const purgeBody = z.union(
  [
    z.strictObject({ handle, soft }),
    z.strictObject({ handles: z.array(handle).min(1).max(MOST_HANDLES), soft }),
    z.strictObject({ prefix: handle, soft }),
    z.strictObject({ all: z.literal(true), soft }),
  ],
  {
    error: `give {"handle": "…"}, {"handles": ["…"]} with at most ${MOST_HANDLES}, {"prefix": "…"} or {"all": true}, and "soft": true or false`,
  },
);

export const logLevelBody = z.strictObject(
  { level: z.enum(LOG_LEVELS) },
  { error: `give {"level": "…"} with one of ${LOG_LEVELS.join(', ')}` },
);

export function orderOf({ soft: isSoft = false, ...target }: z.output<typeof purgeBody>): PurgeOrder {
  if ('handle' in target) return { isSoft, handles: [target.handle] };
  if ('handles' in target) return { isSoft, handles: target.handles };
  return { isSoft, prefix: 'prefix' in target ? target.prefix : '' };
}
