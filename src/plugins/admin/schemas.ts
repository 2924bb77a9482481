// The request bodies of the admin API.
import { LOG_LEVELS } from '../../config/schema-server.js';
import { z } from 'zod';
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import type { JsonLimits } from '../../http/request-body.js';

/** Maximum handles per purge; more would block the event loop. */
const MAX_HANDLES = 10_000;

/** Limits of every request body: the handles of a purge, and the body itself. */
export const BODY_LIMITS: JsonLimits = { elements: MAX_HANDLES, values: MAX_HANDLES + 10 };

const handle = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'not a handle');
const soft = z.boolean().optional();

export const purgeBody = z.union(
  [
    z.strictObject({ handle, soft }),
    z.strictObject({ handles: z.array(handle).min(1).max(MAX_HANDLES), soft }),
    z.strictObject({ prefix: handle, soft }),
    z.strictObject({ all: z.literal(true), soft }),
  ],
  {
    error: `give {"handle": "…"}, {"handles": ["…"]} with at most ${MAX_HANDLES}, {"prefix": "…"} or {"all": true}, and "soft": true or false`,
  },
);

export const logLevelBody = z.strictObject(
  { level: z.enum(LOG_LEVELS) },
  { error: `give {"level": "…"} with one of ${LOG_LEVELS.join(', ')}` },
);
