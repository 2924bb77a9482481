// Test readers of changes: a change feed subscriber, a webhook receiver, and a change file reader.
import { once } from 'node:events';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { newFolder } from './folder.js';

export interface ChangeEvent {
  id: string;
  event: string;
  data: Record<string, unknown>;
}

export interface FeedReader {
  status: number;
  events: ChangeEvent[];
  /** Returns the id of the last message, which may have no data. */
  lastId: () => string | undefined;
  leave: () => void;
  /** Resolves when the stream has ended. */
  ended: Promise<void>;
}

/** Subscribes to the feed until the test ends. */
export async function readFeed(adminUrl: string, lastId?: string): Promise<FeedReader> {
  const leaving = new AbortController();
  onTestFinished(() => {
    leaving.abort();
  });
  const headers = lastId === undefined ? {} : { 'Last-Event-ID': lastId };
  const { status, body } = await fetch(`${adminUrl}/changes`, { headers, signal: leaving.signal });
  const events: ChangeEvent[] = [];
  let last: string | undefined;
  let rest = '';
  const receive = (text: string): void => {
    const messages = (rest + text).split('\n\n');
    rest = messages.pop() ?? '';
    for (const message of messages) {
      const fields = new Map(message.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]));
      const [id, event = '', data] = ['id', 'event', 'data'].map((name) => fields.get(name));
      last = id ?? last;
      if (id !== undefined && data !== undefined)
        events.push({ id, event, data: JSON.parse(data) as ChangeEvent['data'] });
    }
  };
  const pump = async (): Promise<void> => {
    for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) receive(text);
  };
  const ended = pump().catch(() => undefined);
  return {
    status,
    events,
    lastId: () => last,
    leave: () => {
      leaving.abort();
    },
    ended,
  };
}

interface Delivery {
  headers: IncomingHttpHeaders;
  body: string;
  changes: Record<string, unknown>[];
}

export interface WebhookReceiver {
  url: string;
  deliveries: Delivery[];
  /** Returns the changes in all acknowledged deliveries. */
  received: () => Record<string, unknown>[];
  /** Sets the status of later responses. */
  respond: (status: number) => void;
  /** Holds all responses, whose status is already set, until the returned function is called. */
  hold: () => () => void;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const deliveries: Delivery[] = [];
  const acknowledged: Delivery[] = [];
  let status = 204;
  let released = Promise.resolve();
  const server = createServer((req, res) => {
    let body = '';
    req.setEncoding('utf8').on('data', (text: string) => (body += text));
    req.once('end', () => {
      const { changes } = JSON.parse(body) as Pick<Delivery, 'changes'>;
      const delivery = { headers: req.headers, body, changes };
      deliveries.push(delivery);
      if (status < 300) acknowledged.push(delivery);
      const code = status;
      void released.then(() => res.writeHead(code).end());
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/changes`,
    deliveries,
    received: () => acknowledged.flatMap(({ changes }) => changes),
    respond: (next) => {
      status = next;
    },
    hold: () => {
      let release = (): void => undefined;
      released = new Promise((resolve) => (release = resolve));
      return release;
    },
  };
}

/** Returns the path of a change file in a new folder, and a function that reads its lines. */
export function newChangeFile(): { path: string; lines: () => Record<string, unknown>[] } {
  const path = join(newFolder(), 'changes.log');
  return { path, lines: () => linesOf(path) };
}

export const linesOf = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
