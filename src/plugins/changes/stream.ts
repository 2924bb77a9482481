// The change feed as server-sent events. A subscriber resumes after the id in `Last-Event-ID`.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { isGap } from './change.js';
import type { ChangeLog, LogEntry } from './change-log.js';
import { noFeed } from './plugin.js';
import { ServiceError } from '../../errors.js';
import { signalOfLeaving } from '../../http/request-work.js';

export const MAX_SUBSCRIBERS = 16;

/** Interval between reads of the feed. */
const POLL_MS = 250;
const HEARTBEAT_MS = 15_000;
/** Maximum time for a subscriber to read a batch; then it is disconnected. */
const STALL_MS = 10_000;

/** Creates the handler of `GET /changes`. `feed` is undefined if the feed is disabled. */
export function createChangeStream(feed: ChangeLog | undefined): RequestHandler {
  let subscribers = 0;
  return async function streamChanges(req: Request, res: Response): Promise<void> {
    if (feed === undefined) throw noFeed();
    if (subscribers >= MAX_SUBSCRIBERS)
      throw new ServiceError('ADMIN_BUSY', { detail: `at most ${MAX_SUBSCRIBERS}` });
    const lastId = readLastId(req);
    // Prevents nginx from buffering the stream.
    res.set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    res.flushHeaders();
    subscribers++;
    try {
      await sendChanges(res, feed, lastId);
    } finally {
      subscribers--;
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
  const leaving = signalOfLeaving(res);
  // `closed` is false until the event, and a further batch would be read for nobody.
  while (!res.destroyed) {
    const { id, text } = after === undefined ? startAt(await feed.tail()) : await readEvents(feed, after);
    after = id;
    const isIdle = text === '';
    if (isIdle && performance.now() - sentAt < HEARTBEAT_MS) await sleep(POLL_MS, undefined, { ref: false });
    else {
      sentAt = performance.now();
      if (!res.write(isIdle ? ': \n\n' : text)) await drained(res, leaving);
    }
  }
}

/** Waits for the subscriber to read, or to leave; disconnects it if it takes too long. */
const drained = (res: Response, leaving: AbortSignal): Promise<unknown> =>
  once(res, 'drain', { signal: AbortSignal.any([leaving, AbortSignal.timeout(STALL_MS)]) }).catch(() =>
    res.destroy(),
  );

/** Returns an id without data, so that a client that reconnects before the first change misses no change. */
const startAt = (id: string | undefined) => ({ id, text: id === undefined ? '' : `id: ${id}\n\n` });

async function readEvents(feed: ChangeLog, after: string): Promise<{ id: string; text: string }> {
  const entries = (await feed.read(after))?.entries ?? [];
  return { id: entries.at(-1)?.id ?? after, text: entries.map(toEvent).join('') };
}

const toEvent = ({ id, line }: LogEntry): string =>
  `id: ${id}\nevent: ${isGap(line) ? 'gap' : 'change'}\ndata: ${line}\n\n`;
