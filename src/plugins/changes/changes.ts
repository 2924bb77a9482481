// Records this instance's changes in the audit file and in the feed.
import { createReadStream } from 'node:fs';
import { appendFile, constants, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { untilDeadline } from '../../cache/clock.js';
import type { Host, Started } from '../../app/plugin.js';
import { createChangeLog } from './change-log.js';
import { formatChange, formatGap } from './change.js';
import { DeliveryQueue } from './delivery-queue.js';
import { METRICS, type Destination, type ChangesConfig, settingsOf } from './plugin.js';
import { createChangeStream } from './stream.js';
import { createWebhook } from './webhook.js';

/** Maximum time of a stop for the last deliveries to all destinations. */
const CLOSE_MS = 1000;

export function start(host: Host, settings: ChangesConfig): Started {
  const { metrics, clock, cache } = host;
  const { webhook: hook, maxEntries } = settings.changes;
  const { file, hasFeed } = settingsOf(settings);
  const { stampNow, reportsOf } = createReports(host);
  const feed = hasFeed
    ? createChangeLog({ maxEntries, now: clock.wall, ...reportsOf('feed') }, cache)
    : undefined;
  const queues = new Map<string, DeliveryQueue>();
  if (file !== undefined)
    queues.set('file', new DeliveryQueue({ deliver: createAppendToFile(file), ...reportsOf('file') }));
  if (feed) queues.set('feed', new DeliveryQueue({ deliver: feed.append, ...reportsOf('feed') }));
  metrics.readGauge(METRICS.queued, () =>
    [...queues].map(([destination, { length }]) => ({ labels: { destination }, value: length })),
  );
  const webhook = feed && createWebhook(hook, { feed, clock, ...reportsOf('webhook') });
  return {
    async changed(made) {
      const lines = made.map((change) => formatChange(change, { ...stampNow(), id: clock.randomId() }));
      await Promise.all([...queues.values()].map((queue) => queue.add(lines)));
    },
    adminHandlers: { changes: createChangeStream(feed) },
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

/** Creates the callbacks that log and count what happens to the lines of a destination. */
function createReports({ log, metrics, clock }: Host) {
  const countDropped = metrics.counterOf(METRICS.dropped);
  const stampNow = () => ({
    time: new Date(clock.wall()).toISOString(),
    instance: `${hostname()}:${process.pid}`,
  });
  const reportsOf = (destination: Destination) => ({
    formatGap: (dropped: number) => formatGap(dropped, stampNow()),
    onDropped(count: number) {
      countDropped({ destination }, count);
    },
    onFailing(err: unknown) {
      log.warn({ err, destination }, 'changes cannot be delivered, retrying');
    },
    onRecovered(dropped: number) {
      log.info({ destination, dropped }, 'changes are delivered again');
    },
  });
  return { stampNow, reportsOf };
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
