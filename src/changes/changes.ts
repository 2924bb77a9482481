// Records this instance's changes in the audit file and in the feed.
import { createReadStream } from 'node:fs';
import { appendFile, constants, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Cache } from '../cache/cache.js';
import { untilDeadline } from '../cache/clock.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type ChangeLog, createChangeLog } from '../coordination/change-log.js';
import { type RecordChanges, formatChange, formatGap } from './change.js';
import { DeliveryQueue } from './delivery-queue.js';
import { createWebhook } from './webhook.js';

/** Maximum time of a stop for the last deliveries to all destinations. */
const CLOSE_MS = 1000;

export interface Changes {
  record: RecordChanges;
  /** Undefined if the feed is disabled. */
  feed: ChangeLog | undefined;
  /** Attempts a last delivery of the queued changes within a second. */
  close: () => Promise<void>;
}

/** Creates the change recorder, with the feed and the webhook if they are enabled. */
export function createChanges(
  { audit, changes }: Pick<Config, 'audit' | 'changes'>,
  { log, metrics, clock }: Context,
  cache: Pick<Cache, 'commands' | 'era'>,
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
    onRecovered(dropped: number) {
      log.info({ destination, dropped }, 'changes are delivered again');
    },
  });
  const { enabled, maxEntries, webhook: hook } = changes;
  const feed =
    enabled || hook.url !== undefined
      ? createChangeLog({ maxEntries, now: clock.wall, ...reportsOf('feed') }, cache)
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
      const closeAll = async (): Promise<void> => {
        await Promise.all([...queues.values()].map((queue) => queue.close()));
        // The webhook posts what the feed has just received.
        await webhook?.close();
      };
      await untilDeadline(closeAll(), CLOSE_MS, () => new Error('late'), clock).catch(() => undefined);
    },
  };
}

const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = constants;

/**
 * A named pipe without a reader fails instead of blocking a thread: Node.js waits for its threads at exit, and so
 * would never exit.
 */
const APPEND = O_APPEND | O_CREAT | O_WRONLY | O_NONBLOCK;

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
    await appendFile(path, text, { mode: 0o600, flag: APPEND });
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
