// Streams statistics to the status page once a second as server-sent events.
import type { Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../../../errors.js';

const INTERVAL_MS = 1000;

/** Maximum viewers. Each costs a connection and about 10 kB a second. */
export const MAX_VIEWERS = 16;

/** Maximum consecutive missed messages before a viewer is disconnected. */
const MAX_SKIPPED = 30;

/**
 * Collects statistics once for all viewers, and only while a viewer is connected; `onUnexpected` is called if that
 * fails.
 */
export function createEventStream(
  status: () => Promise<object>,
  onUnexpected: (error: unknown) => void,
): RequestHandler {
  /** Consecutive missed messages by viewer. */
  const viewers = new Map<Response, number>();
  let timer: NodeJS.Timeout | undefined;
  let latest: string | undefined;

  async function publish(): Promise<void> {
    try {
      const message = `data: ${JSON.stringify(await status())}\n\n`;
      if (viewers.size === 0) return;
      latest = message;
      for (const [viewer, skipped] of viewers) viewers.set(viewer, sendEvent(viewer, message, skipped));
    } catch (error) {
      onUnexpected(error);
      // The page reports the lost connection and reconnects.
      for (const viewer of viewers.keys()) viewer.destroy();
    }
  }

  function add(viewer: Response): void {
    viewers.set(viewer, 0);
    viewer.once('close', () => {
      remove(viewer);
    });
    if (latest !== undefined) sendEvent(viewer, latest, 0);
    if (timer !== undefined) return;
    void publish();
    timer = setInterval(() => void publish(), INTERVAL_MS).unref();
  }

  function remove(viewer: Response): void {
    viewers.delete(viewer);
    if (viewers.size > 0) return;
    clearInterval(timer);
    timer = latest = undefined;
  }

  return function events(req: Request, res: Response): void {
    if (viewers.size >= MAX_VIEWERS)
      throw new ServiceError('ADMIN_BUSY', { detail: `at most ${MAX_VIEWERS}` });
    // X-Accel-Buffering stops nginx from buffering the stream.
    res.set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    res.flushHeaders();
    add(res);
  };
}

/**
 * Sends a message unless the previous one is still unread, which bounds the backlog. Returns the number of
 * consecutive missed messages.
 */
function sendEvent(viewer: Response, message: string, skipped: number): number {
  if (!viewer.writableNeedDrain) {
    viewer.write(message);
    return 0;
  }
  if (skipped >= MAX_SKIPPED) viewer.destroy();
  return skipped + 1;
}
