// Records this instance's changes in the change file and in the feed, which subscribers read as server-sent events.
import { createReadStream } from 'node:fs';
import { appendFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { onceAMinute, waitAtMost } from '../../clock.js';
import { APPEND } from '../../config/given-files.js';
import { ServiceError } from '../../errors.js';
import type { LoggedChange } from '../../handle/outcome.js';
import { startEvents } from '../../http/request-work.js';
import { fetchRemedy } from '../../upstream/failure.js';
import { type ChangeLog, createChangeLog, type LogEntry } from './change-log.js';
import { createWebhook, DeliveryQueue, type DeliveryCallbacks } from './webhook.js';
import { type ChangesConfig, type Destination, hasFeed, METRICS } from './plugin.js';

/** Maximum time that a stop waits for the last deliveries to all destinations. */
const CLOSE_MS = 1000;

export function start(host: Host, settings: ChangesConfig): Started {
  const { metrics, clock, cache } = host;
  const { file, webhook: hook } = settings.changes;
  const { stampNow, callbacksFor } = createDeliveryCallbacks(host);
  const feed = hasFeed(settings)
    ? createChangeLog(cache, settings.changes, clock.wall, callbacksFor('feed').formatGap)
    : undefined;
  const queues = new Map<string, DeliveryQueue>();
  if (file !== undefined)
    queues.set('file', new DeliveryQueue(createAppendToFile(file), callbacksFor('file'), clock));
  if (feed) queues.set('feed', new DeliveryQueue(feed.append, callbacksFor('feed'), clock));
  metrics.readGauge(METRICS.queued, () =>
    [...queues].map(([destination, { length }]) => ({ labels: { destination }, value: length })),
  );
  const isPosted = feed !== undefined && hook.url !== undefined;
  const webhook = isPosted ? createWebhook(hook, feed, clock, callbacksFor('webhook')) : undefined;
  return {
    async changed(made) {
      const lines = made.map((change) => formatLine(change, { ...stampNow(), id: clock.randomId() }));
      await Promise.all([...queues.values()].map((queue) => queue.add(lines)));
    },
    // Without a feed, the call fails as while the plugin is off.
    adminHandlers: feed ? { changes: createChangeStream(feed) } : {},
    async close() {
      const closeAll = async (): Promise<void> => {
        await Promise.all([...queues.values()].map((queue) => queue.close()));
        // The webhook posts what the feed has just received.
        await webhook?.close();
      };
      await waitAtMost(closeAll(), CLOSE_MS, clock);
      for (const [destination, { length: lost }] of queues)
        if (lost > 0) host.log.error({ destination, lost }, 'changes lost');
    },
  };
}

const REMEDIES: Readonly<Record<Destination, string>> = {
  file: 'make room in the folder of changes.file, and let this user write there',
  feed: 'let Redis respond in time, and store the changes: see its log and its maxmemory',
  webhook: 'let the server at changes.webhook.url respond with 2xx within 5 s',
};

function createDeliveryCallbacks({ log, metrics, clock }: Host) {
  const countDropped = metrics.counterOf(METRICS.dropped);
  const stampNow = () => ({
    time: new Date(clock.wall()).toISOString(),
    instance: `${hostname()}:${process.pid}`,
  });
  function callbacksFor(destination: Destination): DeliveryCallbacks {
    let isLogged = false;
    return {
      formatGap: (dropped: number) => formatGap(dropped, stampNow()),
      onDropped: (count: number) => countDropped({ destination }, count),
      onFailing: onceAMinute(clock, (_count, err: unknown) => {
        isLogged = true;
        // Only the webhook has connections of `fetch`.
        const remedy = fetchRemedy(err, 'changes.webhook.url') ?? REMEDIES[destination];
        log.warn({ err, destination, remedy }, 'changes cannot be delivered, retrying');
      }),
      onRecovered(dropped: number) {
        if (isLogged || dropped > 0) log.info({ destination, dropped }, 'changes are delivered again');
        isLogged = false;
      },
    };
  }
  return { stampNow, callbacksFor };
}

/** Creates a function that appends lines, and reopens the file for each batch to follow log rotation. */
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

/**
 * Maximum subscribers. One more ends the oldest subscription, because its subscriber may have vanished without closing the
 * connection. TCP notices that after a quarter of an hour, and a rejected `EventSource` would not try again.
 */
export const MAX_SUBSCRIBERS = 16;

const POLL_MS = 250;
const HEARTBEAT_MS = 15_000;
/** Maximum time for a subscriber to read a batch; then it is disconnected. */
const STALL_MS = 10_000;

export function createChangeStream(feed: ChangeLog): RequestHandler {
  const subscribers = new Set<Response>();
  return async function streamChanges(req: Request, res: Response): Promise<void> {
    const lastId = readLastId(req);
    if (!startEvents(req, res)) return;
    const [oldest] = subscribers;
    if (oldest !== undefined && subscribers.size >= MAX_SUBSCRIBERS) {
      subscribers.delete(oldest);
      oldest.destroy();
    }
    subscribers.add(res);
    try {
      await sendChanges(res, feed, lastId);
    } finally {
      subscribers.delete(res);
    }
  };
}

/** @throws ServiceError BAD_REQUEST for an id that the feed cannot have sent */
function readLastId({ headers }: Request): string | undefined {
  const id = headers['last-event-id'];
  if (id === undefined || /^\d{1,15}-\d{1,15}$/.test(String(id))) return id?.toString();
  throw new ServiceError('BAD_REQUEST', { detail: 'Last-Event-ID is not an id of this feed' });
}

/** Sends batches until the connection closes. Each batch waits until the previous batch has been read. */
async function sendChanges(res: Response, feed: ChangeLog, lastId: string | undefined): Promise<void> {
  let after = lastId;
  let sentAt = performance.now();
  // `closed` is false until the event, and a further batch would be read for a closed connection.
  while (!res.destroyed) {
    const { id, text } = after === undefined ? startAt(await feed.tail()) : await readEvents(feed, after);
    after = id;
    const isIdle = text === '';
    if (isIdle && performance.now() - sentAt < HEARTBEAT_MS) await sleep(POLL_MS, undefined, { ref: false });
    else {
      sentAt = performance.now();
      if (!res.write(isIdle ? ': \n\n' : text)) await drained(res);
    }
  }
}

/**
 * Waits for the subscriber to read, or to leave; disconnects it if it takes too long. Derives no signal: Node.js 20 keeps each
 * one in memory for as long as its source, which would be as long as the subscription.
 */
async function drained(res: Response): Promise<void> {
  if (res.destroyed) return;
  const late = AbortSignal.timeout(STALL_MS);
  const disconnect = (): unknown => res.destroy();
  late.addEventListener('abort', disconnect);
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      late.removeEventListener('abort', disconnect);
      res.off('drain', settle).off('close', settle);
      resolve();
    };
    res.on('drain', settle).on('close', settle);
  });
}

/** Returns an id without data, so that a client that reconnects before the first change misses no change. */
const startAt = (id: string | undefined) => ({ id, text: id === undefined ? '' : `id: ${id}\n\n` });

async function readEvents(feed: ChangeLog, after: string): Promise<{ id: string; text: string }> {
  const entries = (await feed.read(after))?.entries ?? [];
  return { id: entries.at(-1)?.id ?? after, text: entries.map(toEvent).join('') };
}

const toEvent = ({ id, line }: LogEntry): string =>
  `id: ${id}\nevent: ${isGap(line) ? 'gap' : 'change'}\ndata: ${line}\n\n`;

// The JSON line of a change in the change file, the feed and the webhook.

interface Stamp {
  /** ISO 8601. */
  time: string;
  instance: string;
}

/** An identity that anyone can make up is not longer than a real one: index, prefix and a short suffix. */
const MAX_CLAIMED_CHARS = 256;

/** Lists members explicitly, so that no other leaks. `id`: of a change, which may be delivered twice. */
export function formatLine(change: LoggedChange, { id, time, instance }: Stamp & { id: string }): string {
  const { operation, handle, prefix, indexes, identity, isConfirmed, outcome, requestId } = change;
  const by = isConfirmed ? { identity } : { claimedIdentity: identity?.slice(0, MAX_CLAIMED_CHARS) };
  const via = { interface: change.interface, instance, outcome, requestId };
  return toLine({ operation, id, time, handle, prefix, indexes, ...by, ...via });
}

const GAP = 'gap';

/** Formats the line that replaces lost changes; `dropped` is their minimum number. */
export const formatGap = (dropped: number, { time, instance }: Stamp): string =>
  toLine({ operation: GAP, time, instance, dropped });

export const isGap = (line: string): boolean => line.startsWith(`{"operation":"${GAP}"`);

/** Escapes control characters and line separators, because line readers disagree on what ends a line. */
const toLine = (members: object): string =>
  JSON.stringify(members).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
