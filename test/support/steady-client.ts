// A client that sends requests over one connection until the server closes the connection.
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

export interface SteadyClient {
  /** Returns the statuses of all responses so far. */
  statuses: () => number[];
  /** Returns the number of requests without a response. */
  lost: () => number;
  /** Settles when the server closes the connection or announces this; the client does not reconnect. */
  ended: Promise<void>;
  /** Whether `ended` has settled. */
  hasEnded: () => boolean;
}

export interface SteadyOptions {
  pauseMs?: number;
  /** Returns the next target. */
  next: () => string;
}

export function startSteadyClient(url: string, { pauseMs = 0, next }: SteadyOptions): SteadyClient {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const statuses: number[] = [];
  let lost = 0;
  let isOver = false;
  let hasEnded = false;
  const isOpen = (): boolean => !isOver;
  onTestFinished(() => {
    isOver = true;
    agent.destroy();
  });

  const run = async (): Promise<void> => {
    while (isOpen()) {
      const asked = request({ hostname, port, path: next(), agent });
      try {
        const answer = await wholeAnswer(asked);
        statuses.push(answer.statusCode ?? 0);
        if (answer.headers.connection === 'close') return;
      } catch {
        if (isOpen()) lost++;
        return;
      }
      await pause(pauseMs);
      if (asked.socket?.destroyed !== false) return;
    }
  };

  const ended = run().finally(() => {
    hasEnded = true;
  });
  return { statuses: () => statuses, lost: () => lost, ended, hasEnded: () => hasEnded };
}

function wholeAnswer(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    asked.once('error', reject);
    asked.once('response', (answer) => {
      answer.once('error', reject);
      answer.once('end', () => {
        resolve(answer);
      });
      answer.resume();
    });
    asked.end();
  });
}
