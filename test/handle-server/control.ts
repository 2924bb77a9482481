// The handle that tests and benches hold: counts what was asked, slows the server down, breaks it.
import type { IncomingHttpHeaders } from 'node:http';
import { upperAscii } from '../../src/handle/handle.js';
import type { FaultKind } from './faults.js';
import { Hold } from './hold.js';
import { decodeHandle, splitTarget } from './target.js';

/** A request as it arrived. */
export interface Seen {
  method: string;
  /** The raw request target. */
  target: string;
  headers: IncomingHttpHeaders;
}

export interface DemoControl {
  /** How many requests came in since the start or the last `reset()`, failed ones included. */
  readonly asked: number;
  readonly lastRequest: Seen | undefined;
  /** How many of them were about this handle, in whatever spelling. */
  askedFor: (handle: string) => number;
  /** Counts from nothing again; faults stay. */
  reset: () => void;
  /** Every answer is this late from now on. */
  delay: (ms: number) => void;
  /** Misbehaves from now on, or for so many `times`. */
  fail: (kind: FaultKind, options?: { times?: number }) => void;
  /** Keeps answers back. */
  readonly hold: Hold;
  /** No more faults and no more delay. */
  heal: () => void;
}

/** What is in store for a request. */
export interface Verdict {
  waitMs: number;
  fault: FaultKind | undefined;
}

/** Makes the control of a server and the function that the server tells each request to. */
export function createControl({ delayMs = 0, capacityPerSecond }: ControlOptions): {
  control: DemoControl;
  onRequest: (seen: Seen) => Verdict;
} {
  const counts = new Map<string, number>();
  const queue = createQueue(capacityPerSecond);
  const hold = new Hold();
  const state = { asked: 0, lastRequest: undefined as Seen | undefined, delayMs };
  let failing: { kind: FaultKind; left: number } | undefined;

  const takeFault = (): FaultKind | undefined => {
    if (failing === undefined || failing.left <= 0) return undefined;
    failing.left--;
    return failing.kind;
  };

  const onRequest = (seen: Seen): Verdict => {
    const name = handleOf(seen.target);
    state.asked++;
    state.lastRequest = seen;
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    return { waitMs: state.delayMs + queue(), fault: takeFault() };
  };

  const control: DemoControl = {
    get asked() {
      return state.asked;
    },
    get lastRequest() {
      return state.lastRequest;
    },
    askedFor: (handle) => counts.get(upperAscii(handle)) ?? 0,
    reset: () => {
      state.asked = 0;
      state.lastRequest = undefined;
      counts.clear();
    },
    delay: (ms) => {
      state.delayMs = ms;
    },
    fail: (kind, { times = Infinity } = {}) => {
      failing = { kind, left: times };
    },
    hold,
    heal: () => {
      failing = undefined;
      state.delayMs = 0;
    },
  };
  return { control, onRequest };
}

export interface ControlOptions {
  delayMs?: number;
  capacityPerSecond?: number;
}

function handleOf(target: string): string | undefined {
  const { path } = splitTarget(target);
  if (!/^\/api\/handles\/./i.test(path)) return undefined;
  return upperAscii(decodeHandle(path.slice('/api/handles'.length)));
}

/** Gives each request its place in line and tells how long that is to wait. */
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
