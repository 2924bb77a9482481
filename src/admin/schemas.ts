// Schemas for the admin API's request bodies and responses.
import { LOG_LEVELS } from '../config/schema-server.js';
import { z } from 'zod';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import type { JsonLimits } from '../http/json-limits.js';

/** Maximum handles per purge; more would block the event loop. */
const MAX_HANDLES = 10_000;

/** Limits of every request body: the handles of a purge, and the body itself. */
export const BODY_LIMITS: JsonLimits = { elements: MAX_HANDLES, values: MAX_HANDLES + 10 };

const handle = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'not a handle');
const soft = z
  .boolean()
  .optional()
  .describe('Whether to mark the entries as stale instead of removing them. Default: `false`.');

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

/** A handle's cache entries in memory and Redis. */
export const cacheCopies = z
  .object({
    handle: z.string(),
    cached: z.boolean(),
    copies: z.array(
      z.object({
        tier: z.enum(['memory', 'redis']),
        kind: z.enum(['found', 'empty', 'not-found']),
        state: z.enum(['fresh', 'stale', 'none']),
        ageSeconds: z.number(),
        ttlSeconds: z.number().describe('Remaining TTL in seconds; 0 if stale.'),
        staleIfErrorSeconds: z
          .number()
          .describe('Seconds until the entry can no longer be served, even as stale.'),
        bytes: z.int(),
        hits: z.int().optional().describe('Hits in the memory of this instance since the entry was stored.'),
      }),
    ),
  })
  .meta({ id: 'CacheCopies' });

export type CacheCopy = z.output<typeof cacheCopies>['copies'][number];
