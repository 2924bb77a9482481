// Posts the feed's changes to a URL in signed batches (Standard Webhooks), retrying each batch until the
// response is 2xx.
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, untilDeadline } from '../../cache/clock.js';
import type { ChangesConfig } from './plugin.js';
import type { ChangeLog, LogEntry } from './change-log.js';
import type { DeliveryReports } from './delivery-queue.js';

/** Shorter than the reader lease (`READER_MS`), so that an instance does not post after losing it. */
const TIMEOUT_MS = 5000;
const POLL_MS = 500;
const MAX_BACKOFF_MS = 60_000;
const CLOSE_MS = 1000;

interface Webhook {
  /** Attempts to post the remaining changes within a second. */
  close: () => Promise<void>;
}

/**
 * Starts the webhook; returns undefined if no URL is configured. With Redis, one instance posts the changes
 * of all instances. Changes that left the feed before they were posted are reported as dropped; their number is a
 * minimum.
 */
export function createWebhook(
  { url, secret = '' }: ChangesConfig['changes']['webhook'],
  feed: ChangeLog,
  clock: Clock,
  { onDropped, onFailing, onRecovered }: DeliveryReports,
): Webhook | undefined {
  if (url === undefined) return undefined;
  const endpoint = url;
  const owner = clock.randomId();
  const abort = new AbortController();
  const closing = new AbortController();
  let failures = 0;

  /** Posts the next batch after `cursor`. @returns the last posted id; undefined if nothing was posted */
  async function postAfter(cursor: string): Promise<string | undefined> {
    const batch = await feed.read(cursor);
    if (batch === undefined || batch.entries.length === 0) return undefined;
    try {
      await post(batch.entries, { url: endpoint, secret, now: clock.wall(), signal: abort.signal });
    } catch (error) {
      if (failures++ === 0) onFailing(error);
      return undefined;
    }
    if (failures > 0) onRecovered(batch.missed);
    failures = 0;
    if (batch.missed > 0) onDropped(batch.missed);
    return batch.entries.at(-1)?.id;
  }

  async function run(): Promise<void> {
    let acknowledged: string | undefined;
    let retryAt = 0;
    for (;;) {
      // An attempt that began before the end is not the last one: it may fail.
      const isLast = closing.signal.aborted;
      const cursor = await feed.claimReader(owner, acknowledged);
      const isDue = isLast || performance.now() >= retryAt;
      if (cursor !== undefined) acknowledged = isDue ? await postAfter(cursor) : undefined;
      if (cursor !== undefined && acknowledged !== undefined) continue;
      if (isLast) return;
      if (isDue && failures > 0) retryAt = performance.now() + backoffMs(failures);
      await sleep(POLL_MS, undefined, { ref: false, signal: closing.signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    async close() {
      closing.abort();
      await untilDeadline(running, CLOSE_MS, () => new Error('late'), clock).catch(() => undefined);
      abort.abort();
    },
  };
}

const backoffMs = (failures: number): number => Math.min(1000 * 2 ** (failures - 1), MAX_BACKOFF_MS);

interface SignedPost {
  url: string;
  /** Base64. */
  secret: string;
  now: number;
  signal: AbortSignal;
}

/** Posts a batch signed with HMAC-SHA256 (Standard Webhooks 1.0.0). @throws Error unless the response is 2xx */
async function post(entries: readonly LogEntry[], { url, secret, now, signal }: SignedPost): Promise<void> {
  const body = `{"changes":[${entries.map(({ line }) => line).join(',')}]}`;
  const id = entries.at(-1)?.id ?? '';
  const timestamp = String(Math.floor(now / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const response = await globalThis.fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Webhook-Id': id,
      'Webhook-Timestamp': timestamp,
      'Webhook-Signature': `v1,${signature}`,
    },
    body,
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the webhook responded with ${response.status}`);
}
