// Demo servers under test control: request counts, delays, held responses, faults, and changes of records.
import type { ServerResponse } from 'node:http';
import { type SeenRequest, type WireReply, decodeHandle, splitTarget } from '../../src/dev-server/respond.js';
import { type DemoOptions, type DemoServer, createDemoServer } from '../../src/dev-server/server.js';
import type { RecordInput } from '../../src/dev-server/store.js';
import { upperAscii } from '../../src/handle/handle.js';
import { writeJson } from '../../src/handle/json.js';

export interface ControlledOptions extends Omit<DemoOptions, 'treat'> {
  delayMs?: number;
  /** Rate per second above which requests are queued. */
  capacityPerSecond?: number;
}

export interface ControlledServer extends DemoControl, DemoServer {
  /** Writes a whole record without the proxy's knowledge. */
  put: (handle: string, values: RecordInput) => void;
  /** Removes a record without the proxy's knowledge. Returns false if no record existed. */
  remove: (handle: string) => boolean;
}

/** Creates a server with its records and controls. No listener is open yet. */
export function createControlledServer(options: ControlledOptions = {}): ControlledServer {
  const control = new DemoControl(options);
  const server = createDemoServer({
    ...options,
    treat(seen) {
      const { isProbe, waitMs, fault } = control.onRequest(seen);
      return (answer, response) => {
        const respond = (): void => {
          const reply = answer();
          const send = (): void => {
            if (!response.destroyed) sendControl(response, reply, fault);
          };
          if (isProbe) send();
          else control.hold.onAnswer(seen.method, send);
        };
        if (waitMs > 0) setTimeout(respond, waitMs).unref();
        else respond();
      };
    },
  });
  return Object.assign(control, server, {
    put: (name: string, values: RecordInput) => {
      server.store.put(name, values);
    },
    remove: (name: string) => server.store.delete(name),
  });
}

const SITE = '/api/site';

/** Whether the request is a probe from a starting proxy: for a probed path, with the proxy's User-Agent. */
const isHealthRequest = ({ target, headers }: SeenRequest): boolean =>
  [SITE, '/api/handles/0.NA/0.NA'].includes(target) && headers['user-agent'] === 'handle-resolver-proxy';

/** Treatment of a request: whether it counts as a probe, its delay and its fault. */
interface Treatment {
  isProbe: boolean;
  waitMs: number;
  fault: FaultKind | undefined;
}

/**
 * Controls a demo server. Probes from starting proxies arrive at unpredictable times, so they are counted
 * separately and do not use up a limited number of faults.
 */
class DemoControl {
  /** Number of requests since the start or the last `reset()`, including failed requests. */
  asked = 0;
  /** Number of probes since the start, counted by their requests for `/api/site`. */
  probed = 0;
  lastRequest: SeenRequest | undefined;
  readonly hold = new Hold();
  readonly #counts = new Map<string, number>();
  #queue: () => number;
  #delayMs: number;
  #failing: { kind: FaultKind; left: number } | undefined;

  constructor({ delayMs = 0, capacityPerSecond }: ControlledOptions) {
    this.#queue = createQueue(capacityPerSecond);
    this.#delayMs = delayMs;
  }

  /** Returns the number of requests for a handle, in any spelling. */
  askedFor(handle: string): number {
    return this.#counts.get(upperAscii(handle)) ?? 0;
  }

  /** Resets the counts, except `probed`. Faults remain. */
  reset(): void {
    this.asked = 0;
    this.lastRequest = undefined;
    this.#counts.clear();
  }

  /** Delays every later response by `ms`. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Queues later requests above this rate per second. 0 removes the limit. */
  limit(capacityPerSecond: number): void {
    this.#queue = createQueue(capacityPerSecond > 0 ? capacityPerSecond : undefined);
  }

  /** Fails all later requests, or the next `times` requests. */
  fail(kind: FaultKind, { times = Infinity }: { times?: number } = {}): void {
    this.#failing = { kind, left: times };
  }

  /** Ends all faults and delays. */
  heal(): void {
    this.#failing = undefined;
    this.#delayMs = 0;
  }

  /** Counts a request, and decides how it is treated. */
  onRequest(seen: SeenRequest): Treatment {
    if (isHealthRequest(seen)) {
      if (seen.target === SITE) this.probed++;
      const fault = this.#failing?.left === Infinity ? this.#failing.kind : undefined;
      return { isProbe: true, waitMs: this.#delayMs, fault };
    }
    const name = handleOf(seen.target);
    this.asked++;
    this.lastRequest = seen;
    if (name !== undefined) this.#counts.set(name, this.askedFor(name) + 1);
    return { isProbe: false, waitMs: this.#delayMs + this.#queue(), fault: this.#takeFault() };
  }

  #takeFault(): FaultKind | undefined {
    if (this.#failing === undefined || this.#failing.left <= 0) return undefined;
    this.#failing.left--;
    return this.#failing.kind;
  }
}

function handleOf(target: string): string | undefined {
  const { path } = splitTarget(target);
  if (!/^\/api\/handles\/./i.test(path)) return undefined;
  return upperAscii(decodeHandle(path.slice('/api/handles'.length)));
}

/** Creates a queue: a function that adds a request and returns its waiting time in ms. */
function createQueue(capacityPerSecond: number | undefined): () => number {
  if (capacityPerSecond === undefined) return () => 0;
  const stepMs = 1000 / capacityPerSecond;
  let freeAt = 0;
  return () => {
    const now = performance.now();
    freeAt = Math.max(now, freeAt) + stepMs;
    return freeAt - now - stepMs;
  };
}

class Hold {
  readonly #methods = new Set<string>();
  #held: { method: string; send: () => void }[] = [];

  /** Number of responses held back now. */
  get size(): number {
    return this.#held.length;
  }

  /** Holds back later responses to requests with this method; the requests are still executed. */
  holdReplies(method: string): void {
    this.#methods.add(method);
  }

  /** Stops holding later responses for this method, and keeps those that are held. */
  holdNoMore(method: string): void {
    this.#methods.delete(method);
  }

  /** Sends the held responses, and stops holding responses for this method. */
  sendHeld(method: string): void {
    this.#methods.delete(method);
    const due = this.#held.filter((held) => held.method === method);
    this.#held = this.#held.filter((held) => held.method !== method);
    for (const { send } of due) send();
  }

  onAnswer(method: string, send: () => void): void {
    if (this.#methods.has(method)) this.#held.push({ method, send });
    else send();
  }
}

/**
 * Faults: `refuse` 503 too busy · `error` 500 code 2 · `html` a page with status 200 · `garbage` broken JSON
 * · `hang` no response · `reset` connection reset · `cut` the body is truncated · `stall` the body stops but
 * the connection stays open · `wrong-handle` a record of a different handle.
 */
export const FAULT_KINDS = [
  'refuse',
  'error',
  'html',
  'garbage',
  'hang',
  'reset',
  'cut',
  'stall',
  'wrong-handle',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

const JSON_TYPE = 'application/json;charset=utf-8';

function faultyReply(status: number, contentType: string, text: string): WireReply {
  const body = Buffer.from(text);
  return {
    status,
    headers: [
      ['Content-Type', contentType],
      ['Content-Length', String(body.length)],
    ],
    body,
  };
}

const REPLACED: Partial<Record<FaultKind, WireReply>> = {
  refuse: faultyReply(503, JSON_TYPE, '{"responseCode":3,"message":"Server too busy"}'),
  error: faultyReply(500, JSON_TYPE, '{"responseCode":2,"message":"Internal Error"}'),
  html: faultyReply(
    200,
    'text/html;charset=utf-8',
    '<!DOCTYPE html><title>Gateway</title><h1>Please log in</h1>',
  ),
  garbage: faultyReply(200, JSON_TYPE, '{"responseCode":1,"handle":"21.T11998/'),
  'wrong-handle': faultyReply(
    200,
    JSON_TYPE,
    writeJson({
      responseCode: 1,
      handle: '21.T11998/somebody-else',
      values: [
        { index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/else' }, ttl: 86400 },
      ],
    }),
  ),
};

function sendControl(response: ServerResponse, reply: WireReply, fault?: FaultKind): void {
  if (fault === 'hang') return;
  if (fault === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  const { status, headers, body } = (fault && REPLACED[fault]) ?? reply;
  response.writeHead(status, headers.flat());
  if (fault === 'cut' || fault === 'stall') {
    response.write(body.subarray(0, body.length / 2), () => {
      if (fault === 'cut') response.destroy();
    });
    return;
  }
  response.end(body);
}
