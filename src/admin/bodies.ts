// The bodies of calls of the admin listener, and their limits.
import { z } from 'zod';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { LOG_LEVELS } from '../observe/logger.js';

/** A longer list would block a process. */
const MAX_HANDLES = 10_000;

const handle = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'not a handle');
const soft = z.boolean().optional().describe('Keep the entries as stale, for an upstream that fails.');

export const purgeBody = z
  .union(
    [
      z.strictObject({ handle, soft }),
      z.strictObject({ handles: z.array(handle).min(1).max(MAX_HANDLES), soft }),
      z.strictObject({ prefix: handle, soft }),
      z.strictObject({ all: z.literal(true), soft }),
    ],
    {
      error: `give {"handle": "…"}, {"handles": ["…"]} with at most ${MAX_HANDLES}, {"prefix": "…"} or {"all": true}, and "soft": true or false`,
    },
  )
  .meta({ id: 'PurgeOrder' });

export const logLevelBody = z
  .strictObject(
    { level: z.enum(LOG_LEVELS) },
    { error: `give {"level": "…"} with one of ${LOG_LEVELS.join(', ')}` },
  )
  .meta({ id: 'LogLevel' });
