// The caller of a request to a Handle server, which decides its share of the slots.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** From first to last. Refresh-ahead and batches are in the background. */
export const CLASSES = ['preferred', 'normal', 'background'] as const;
export type CallerClass = (typeof CLASSES)[number];

export interface Caller {
  class: CallerClass;
  /** Its network: one client has no more than a share. Undefined for work of our own. */
  client: string | undefined;
}

export const OWN_WORK: Caller = { class: 'background', client: undefined };

/** Judges a request before the Handle server is asked for it. @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED */
export type Admit = (req: IncomingMessage, res: ServerResponse) => Caller | Promise<Caller>;
