// Records this instance's changes in the audit file and in the feed.
import { createReadStream } from 'node:fs';
import { appendFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Cache } from '../cache/cache.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type ChangeLog, createChangeLog } from '../coordination/change-log.js';
import { type RecordChanges, formatChange, formatGap } from './change.js';
import { DeliveryQueue } from './delivery-queue.js';
import { createWebhook } from './webhook.js';

export interface Changes {
  record: RecordChanges;
  /** Undefined if the feed is disabled. */
  feed: ChangeLog | undefined;
  /** Attempts a last delivery of the queued changes. */
  close: () => Promise<void>;
}

/** Creates the change recorder, with the feed and the webhook if they are enabled. */
export function createChanges(
  { audit, changes }: Pick<Config, 'audit' | 'changes'>,
  { log, metrics, clock }: Context,
  { commands }: Pick<Cache, 'commands'>,
): Changes {
  const stamp = () => ({
    time: new Date(clock.wall()).toISOString(),
    instance: `${hostname()}:${process.pid}`,
  });
  const reportsOf = (destination: 'file' | 'feed' | 'webhook') => ({
    formatGap: (dropped: number) => formatGap(dropped, stamp()),
    onDropped(count: number) {
      metrics.countDroppedChange(destination, count);
    },
    onFailing(err: unknown) {
      log.warn({ err, destination }, 'changes cannot be delivered, retrying');
    },
  });
  const { enabled, maxEntries, webhook: hook } = changes;
  const feed =
    enabled || hook.url !== undefined
      ? createChangeLog({ maxEntries, now: clock.wall, ...reportsOf('feed') }, commands)
      : undefined;
  const queues = new Map<string, DeliveryQueue>();
  if (audit.file !== undefined)
    queues.set('file', new DeliveryQueue({ deliver: createAppendToFile(audit.file), ...reportsOf('file') }));
  if (feed) queues.set('feed', new DeliveryQueue({ deliver: feed.append, ...reportsOf('feed') }));
  metrics.registerQueuedChanges(() =>
    [...queues].map(([destination, { length }]) => ({ destination, length })),
  );
  const webhook = feed && createWebhook(hook, { feed, clock, ...reportsOf('webhook') });
  return {
    feed,
    async record(made) {
      if (queues.size === 0) return;
      const lines = made.map((change) => formatChange(change, { ...stamp(), id: clock.randomId() }));
      await Promise.all([...queues.values()].map((queue) => queue.add(lines)));
    },
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      await webhook?.close();
    },
  };
}

/**
 * Returns a function that appends lines to a file. It reopens the file for each batch, so that it follows log
 * rotation.
 */
function createAppendToFile(path: string): (lines: readonly string[]) => Promise<void> {
  let isTorn: boolean | undefined;
  return async function appendToFile(lines) {
    // A failed write, or a process that was killed, may have left a partial line.
    isTorn ??= await endsInPartialLine(path);
    const text = `${isTorn ? '\n' : ''}${lines.join('\n')}\n`;
    isTorn = true;
    await appendFile(path, text, { mode: 0o600 });
    isTorn = false;
  };
}

/** Whether a regular file ends with a partial line; false if it cannot be read. */
async function endsInPartialLine(path: string): Promise<boolean> {
  const file = await stat(path).catch(() => undefined);
  if (!file?.isFile() || file.size === 0) return false;
  const reading = createReadStream(path, { encoding: 'utf8', start: file.size - 1 }).toArray();
  const end = (await reading.catch(() => [])).join('');
  return end !== '' && !end.endsWith('\n');
}
