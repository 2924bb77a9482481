// Compares the change files, the feed and the webhook with the acknowledged writes.
import { type FeedReader, readFeed } from '../support/changes.js';

/** A line of the change file, the feed or the webhook: a change or a gap. */
export type Line = Record<string, unknown>;

export interface Acknowledged {
  requestId: string;
  /** The proxy life that forwarded the write. */
  by: string;
  startedAt: number;
  acknowledgedAt: number;
}

export interface Missing extends Acknowledged {
  /** Whether the same proxy life published no later write. */
  isLast: boolean;
}

export interface Published {
  acknowledged: (write: Acknowledged) => void;
  /** Returns the writes that `lines` lacks and that have no gap in their place. */
  missing: (lines: Line[]) => Missing[];
}

export function createPublished(): Published {
  const writes: Acknowledged[] = [];
  return {
    acknowledged: (write) => writes.push(write),
    missing(lines) {
      const places = new Map<unknown, number>();
      lines.forEach(({ requestId }, at) => {
        if (!places.has(requestId)) places.set(requestId, at);
      });
      const gaps = gapsIn(lines);
      const placesOf = (isWanted: (write: Acknowledged) => boolean): number[] =>
        writes.filter(isWanted).flatMap(({ requestId }) => places.get(requestId) ?? []);
      return writes
        .filter(({ requestId }) => !places.has(requestId))
        .flatMap((write) => {
          const from = Math.max(-1, ...placesOf((other) => isInOrder(other, write)));
          const to = Math.min(Infinity, ...placesOf((other) => isInOrder(write, other)));
          if (gaps.some((at) => at > from && at < to)) return [];
          const isLast = !writes.some(
            (other) => other.by === write.by && isInOrder(write, other) && places.has(other.requestId),
          );
          return [{ ...write, isLast }];
        });
    },
  };
}

/** Longest time for which a proxy retains a change because Redis is unavailable. */
const QUEUED_MS = 20_000;

/** Whether one write is published before the other: a proxy publishes its own in order. */
const isInOrder = (one: Acknowledged, other: Acknowledged): boolean =>
  one.acknowledgedAt + (one.by === other.by ? 0 : QUEUED_MS) < other.startedAt;

export const gapsIn = (lines: Line[]): number[] =>
  lines.flatMap(({ operation }, at) => (operation === 'gap' ? [at] : []));

export interface Subscriber {
  lines: () => Line[];
  /** Stays connected from now on. */
  stay: () => void;
  stop: () => Promise<void>;
}

export interface SubscriberOptions {
  /** Admin URL of the next proxy to read from; undefined while none runs. */
  nextUrl: () => string | undefined;
  /** Time (ms) for which the subscriber reads, or is away. */
  nextMs: () => number;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const RETRY_MS = 100;

/** Reads the feed from its start, leaves from time to time, and resumes after its last id through any proxy. */
export function subscribe({ nextUrl, nextMs }: SubscriberOptions): Subscriber {
  const lines: Line[] = [];
  let reader: FeedReader | undefined;
  const state = { isStaying: false, isRunning: true };
  let lastId = '0-0';
  const linesOf = (from: FeedReader | undefined): Line[] => from?.events.map(({ data }) => data) ?? [];
  const readOnce = async (): Promise<void> => {
    const url = nextUrl();
    if (url === undefined) return;
    reader = await readFeed(url, lastId);
    if (state.isStaying) await reader.ended;
    else await Promise.race([reader.ended, pause(nextMs())]);
    reader.leave();
    await reader.ended;
    lines.push(...linesOf(reader));
    lastId = reader.lastId() ?? lastId;
    reader = undefined;
  };
  const running = (async () => {
    while (state.isRunning) {
      await readOnce().catch(() => undefined);
      await pause(state.isStaying ? RETRY_MS : nextMs());
    }
  })();
  return {
    lines: () => [...lines, ...linesOf(reader)],
    stay() {
      state.isStaying = true;
    },
    async stop() {
      state.isRunning = false;
      reader?.leave();
      await running;
    },
  };
}
