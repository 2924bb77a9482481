// The stream behind the status page: the statistics once a second, as server-sent events.
import type { Request, RequestHandler, Response } from 'express';
import { sendProblem } from '../problem.js';

export interface EventsDeps {
  stats: () => Promise<unknown>;
  /** Told when the statistics could not be had. */
  onUnexpected?: ((error: unknown) => void) | undefined;
}

const EVERY_MS = 1000;

/** Walls and desks; each takes a connection and some ten kilobytes a second. */
export const MOST_WATCHERS = 16;

/** Who has not read for so many messages is gone, or keeps a place from others. */
const MOST_SKIPPED = 30;

/** The statistics are asked for once for all who watch, and not at all when nobody does. */
export function createEvents({ stats, onUnexpected }: EventsDeps): RequestHandler {
  /** Each with the number of messages it was not sent in a row. */
  const watchers = new Map<Response, number>();
  let timer: NodeJS.Timeout | undefined;
  let isAsking = false;
  let latest: string | undefined;

  async function tellAll(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    try {
      const message = `data: ${JSON.stringify(await stats())}\n\n`;
      latest = message;
      for (const [watcher, skipped] of watchers) watchers.set(watcher, tell(watcher, message, skipped));
    } catch (error) {
      onUnexpected?.(error);
      // They come again, and see for as long that something is wrong.
      for (const watcher of watchers.keys()) watcher.destroy();
    } finally {
      isAsking = false;
    }
  }

  function leave(watcher: Response): void {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = latest = undefined;
  }

  return function events(req: Request, res: Response): void {
    if (watchers.size >= MOST_WATCHERS) {
      sendProblem(res, 'ADMIN_BUSY', `at most ${MOST_WATCHERS} may watch at the same time`);
      return;
    }
    // nginx would hold it back.
    res.set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    res.flushHeaders();
    watchers.set(res, 0);
    res.once('close', () => {
      leave(res);
    });
    if (latest !== undefined) tell(res, latest, 0);
    timer ??= startTelling(tellAll);
  };
}

function startTelling(tellAll: () => Promise<void>): NodeJS.Timeout {
  void tellAll();
  return setInterval(() => void tellAll(), EVERY_MS).unref();
}

/** Only who has read what came before gets more: what nobody reads would gather in memory. */
function tell(watcher: Response, message: string, skipped: number): number {
  if (!watcher.writableNeedDrain) {
    watcher.write(message);
    return 0;
  }
  if (skipped >= MOST_SKIPPED) watcher.destroy();
  return skipped + 1;
}
