// The commonest GETs, answered from prepared bytes before Express is entered (design decision 15).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Entry, Times } from '../cache/entry.js';
import type { MemoryStore } from '../cache/memory/memory-store.js';
import type { Held } from '../cache/memory/row-store.js';
import { createHitLines } from '../http/cache-headers.js';
import { linesWithCors } from '../http/cors.js';
import { createFirstHit } from './first-hit.js';
import {
  type HotAnswer,
  type Prepared,
  PreparedAnswers,
  type PreparedBounds,
  type Variant,
} from './response-cache.js';
import { acceptsGzip, matchesEtag } from '../http/representation.js';
import type { Hit } from './resolve.js';
import type { AskedHeaders, ScanHeaders } from '../http/fast-headers.js';
import { type Lines, createWire, linesOf } from '../http/raw-response.js';

export interface HotPathDeps {
  bounds: PreparedBounds;
  scanHeaders: ScanHeaders;
  memory: Pick<MemoryStore, 'peek' | 'hold' | 'look'>;
  keyOf: (handle: string) => string;
  clientMaxAgeMs: number;
  gzipMinBytes: number;
  now: () => number;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
  onAnswered: (answered: HotAnswer) => void;
}

export interface HotPath {
  /** True when the request was answered; otherwise nothing was done to it. */
  answer: (req: IncomingMessage, res: ServerResponse) => boolean;
  /** Takes what the long way made of a hit, for the next time. */
  offer: (hit: Hit) => unknown;
}

export function createHotPath(deps: HotPathDeps): HotPath {
  const answers = new PreparedAnswers(deps.bounds);
  const send = createSend(deps.clientMaxAgeMs);
  const firstHit = createFirstHit({ ...deps, usable: (key) => usableEntry(deps, key) });

  /** The prepared answer, as long as the long way would give the same now. */
  function stillTrue(target: string, now: number): Prepared | undefined {
    const prepared = answers.get(target);
    if (prepared === undefined) return undefined;
    // A forgotten, fenced, replaced or distrusted entry is not the one that memory gives: that is all there is to check.
    if (!deps.memory.look(prepared.key, prepared)) {
      answers.delete(target);
      return undefined;
    }
    if (now >= prepared.staleAt || prepared.cachedAt < deps.trustedSince()) return undefined;
    if (now < prepared.refreshAt) return prepared;
    prepared.refreshAt = Infinity;
    return undefined;
  }

  function answer(req: IncomingMessage, res: ServerResponse): boolean {
    const { method, url } = req;
    if ((method !== 'GET' && method !== 'HEAD') || url === undefined) return false;
    const now = deps.now();
    const asked = deps.scanHeaders(req.rawHeaders);
    if (asked === undefined) return false;
    const prepared = stillTrue(url, now) ?? prepareNow(url);
    if (prepared === undefined) return false;
    const variant = variantFor(prepared, asked);
    if (variant === undefined) return false;
    const status = send(res, { prepared, variant, asked, isHead: method === 'HEAD', now });
    deps.onAnswered(answeredWith(prepared, method, status));
    return true;
  }

  function prepareNow(target: string): Prepared | undefined {
    const hit = firstHit(target);
    return hit && keep(hit);
  }

  /** Undefined when memory keeps another entry meanwhile, or none. */
  function keep(offered: Hit): Prepared | undefined {
    const key = deps.keyOf(offered.handle);
    const held = deps.memory.hold(key, offered.entry);
    if (held === undefined) return undefined;
    const known = answers.get(offered.target);
    const prepared = known?.stamp === held.stamp ? known : prepare(offered, key, held);
    prepared[offered.made.encoding] = variantOf(offered);
    answers.set(offered.target, prepared);
    return prepared;
  }

  return { answer, offer: keep };
}

/** What may be said of a key without the long way, which alone refreshes, asks and lets stand in. */
function usableEntry(
  { memory, now, trustedSince }: Pick<HotPathDeps, 'memory' | 'now' | 'trustedSince'>,
  key: string,
): Entry | undefined {
  const entry = memory.peek(key);
  const isUsable = entry !== undefined && now() < refreshTime(entry) && entry.cachedAt >= trustedSince();
  return isUsable ? entry : undefined;
}

const variantFor = (prepared: Prepared, { acceptEncoding }: AskedHeaders): Variant | undefined =>
  prepared.isWorthGzip && acceptsGzip(acceptEncoding) ? prepared.gzip : prepared.identity;

function prepare({ target, handle, entry, status, made }: Hit, key: string, held: Held): Prepared {
  return {
    method: 'GET',
    handle,
    target,
    status,
    key,
    at: held.at,
    stamp: held.stamp,
    cachedAt: entry.cachedAt,
    staleAt: entry.staleAt,
    refreshAt: refreshTime(entry),
    identity: undefined,
    gzip: undefined,
    isWorthGzip: made.isWorthGzip,
  };
}

function variantOf({ made: { body, common, ofBody, etag } }: Hit): Variant {
  const commonLines = linesOf(common);
  // Joined as one piece: what is glued together anew with each answer should be few strings.
  const head = Buffer.from(commonLines + linesOf(ofBody), 'latin1').toString('latin1') as Lines;
  return { body: body.toString('latin1'), head, commonLength: commonLines.length, etag };
}

/** From here on (ms) the long way may refresh the entry ahead. */
const refreshTime = ({ cachedAt, staleAt }: Times): number => staleAt - (staleAt - cachedAt) / 10;

/** Nearly always the same as last time, so that log and metrics can recognise it. */
function answeredWith(prepared: Prepared, method: string, status: number): HotAnswer {
  if (method === prepared.method && status === prepared.status) return prepared;
  const { handle, target } = prepared;
  return { handle, target, method, status };
}

interface Sending {
  prepared: Prepared;
  variant: Variant;
  asked: AskedHeaders;
  isHead: boolean;
  now: number;
}

/** Sends the answer, or that it is known already, and says which. */
function createSend(clientMaxAgeMs: number): (res: ServerResponse, sending: Sending) => number {
  const hitLines = createHitLines(clientMaxAgeMs);
  const wire = createWire();
  return function send(res, { prepared, variant, asked, isHead, now }) {
    const { head, commonLength, body, etag } = variant;
    const { ifNoneMatch, origin } = asked;
    const isKnown = etag !== undefined && ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag);
    const status = isKnown ? 304 : prepared.status;
    const lines = (hitLines(prepared, now) + (isKnown ? head.slice(0, commonLength) : head)) as Lines;
    const all = origin === undefined ? lines : linesWithCors(lines, origin);
    wire(res, { status, lines: all, body: isKnown || isHead ? '' : body }, now);
    return status;
  };
}
