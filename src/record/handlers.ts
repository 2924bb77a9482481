// The handlers of the record interface, by the names that its routes give them.
import { type ForwardReadDeps, createForwardRead } from './pass-through.js';
import type { RequestHandler } from 'express';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type BatchParts, createBatch } from './batch/answer.js';
import type { Forwarding } from './forwarding.js';
import { type WriteRouteDeps, createWriteRoute } from './write.js';

interface RecordParts
  extends Forwarding, Omit<WriteRouteDeps, 'resolver'>, ForwardReadDeps, Omit<BatchParts, 'resolver'> {
  resolver: WriteRouteDeps['resolver'] & BatchParts['resolver'];
}

export function createRecordHandlers(
  config: Pick<Config, 'http' | 'batch'>,
  context: Context,
  parts: RecordParts,
): Record<string, RequestHandler | undefined> {
  return {
    passThrough: parts.passThrough,
    reverseLookup: parts.reverse?.passThrough,
    forwardRead: createForwardRead(parts),
    write: createWriteRoute(parts),
    ...(config.batch.enabled && createBatch(config, context, parts)),
  };
}
