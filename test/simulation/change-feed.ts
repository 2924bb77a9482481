// The change feed of all instances, its subscribers, and the receiver of its webhook: none misses a change without a gap.
import { partial } from '../support/partial.js';
import type { Cache } from '../../src/cache/cache.js';
import { ServiceError } from '../../src/errors.js';
import { type ChangeLog, createChangeLog } from '../../src/plugins/changes/change-log.js';
import { createWebhook, DeliveryQueue } from '../../src/plugins/changes/webhook.js';
import type { Process } from './process.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

/** Few, so that a subscriber that is away finds changes trimmed. */
const BOUNDS = { maxEntries: 30, maxChars: 2 ** 20 };
const POLL_MS = 250;
/** Time for which a subscriber reads through one instance, and may be away afterwards, in ms. */
const STAY_MS = 3000;
const AWAY_MS = 10_000;
const MAX_POST_MS = 50;
/** The longest pause of the webhook after failures, its poll, and a post, in ms. */
const DELIVERY_MS = 62_000;

interface Recorded {
  /** The life of the process that recorded it. */
  by: string;
  at: number;
  /** Virtual time at which its instance knew that Redis has it. */
  keptAt: number;
  /** How often it was sent to Redis: again if the reply was lost. */
  sent: number;
  /** The era of Redis in which it was kept. */
  era?: string | undefined;
}

/** The feed of one instance. */
export interface InstanceFeed {
  log: ChangeLog;
  /** Records a change, as a write does before its response. */
  record: () => Promise<void>;
}

const RECEIVER = 'the receiver';
const GAP = 'gap';
type Line = number | typeof GAP;

export class ChangeFeed {
  readonly #world: World;
  readonly #changes: Recorded[] = [];
  readonly #received = new Map<string, Line[]>();
  /** The time at which each era was first used. */
  readonly #eras = new Map<string, number>();
  #receiverFails = true;

  constructor(world: World) {
    this.#world = world;
  }

  get counts(): { changes: number; announced: number; gaps: number } {
    const lines = [...this.#received.values()].flat();
    const gaps = lines.filter((line) => line === GAP).length;
    return { changes: this.#changes.length, announced: lines.length - gaps, gaps };
  }

  /** Starts the feed and the webhook of an instance. */
  open(process: Process, cache: Cache): InstanceFeed {
    const { clock } = process;
    const nothing = (): void => undefined;
    const callbacks = {
      formatGap: () => `"${GAP}"`,
      onDropped: nothing,
      onFailing: nothing,
      onRecovered: nothing,
    };
    const log = createChangeLog(cache, BOUNDS, clock.wall, callbacks.formatGap);
    const deliver = async (lines: readonly string[]): Promise<void> => {
      const sent = lines.flatMap((line) => this.#changes[Number(line)] ?? []);
      for (const change of sent) change.sent++;
      await log.append(lines);
      const era = cache.era()?.name ?? '';
      if (!this.#eras.has(era)) this.#eras.set(era, this.#world.now);
      for (const change of sent)
        if (change.keptAt === Infinity) Object.assign(change, { keptAt: this.#world.now, era });
    };
    const queue = new DeliveryQueue(deliver, callbacks, clock);
    const send = (_url: string, { body }: RequestInit) => this.#post(process, body as string);
    const receiver = { send, close: () => Promise.resolve() };
    createWebhook({ url: 'http://receiver', secret: 'c2VjcmV0' }, log, clock, callbacks, partial(receiver));
    const by = lifeOf(process);
    const record = (): Promise<void> =>
      queue.add([String(this.#changes.push({ by, at: this.#world.now, keptAt: Infinity, sent: 0 }) - 1)]);
    return { log, record };
  }

  /** Starts two subscribers, of which the second is away most of the time. */
  start(): void {
    this.#subscribe('a subscriber', 1000);
    this.#subscribe('a rare subscriber', AWAY_MS);
  }

  /** Ends the failures of the receiver, and waits for the webhook, which may pause after them. */
  async settle(): Promise<void> {
    this.#receiverFails = false;
    const last = this.#changes.findLastIndex(({ keptAt }) => keptAt < Infinity);
    const isDelivered = (): boolean => this.#received.get(RECEIVER)?.includes(last) ?? last < 0;
    await this.#world.simulation.scheduler.runUntil(this.#world.now + DELIVERY_MS, isDelivered);
  }

  /** Checks that each subscriber and the receiver got each change, or a gap in its place. @throws Violation */
  check(): void {
    for (const [name, lines] of this.#received) {
      // Redis may come back from a dump with an earlier position of the webhook.
      if (name !== RECEIVER) this.#assertOrder(name, lines);
      const places = new Map<Line, number>();
      for (const [place, line] of lines.entries()) if (!places.has(line)) places.set(line, place);
      for (const [number, change] of this.#changes.entries())
        if (change.keptAt < Infinity && !places.has(number)) this.#assertGap(name, lines, places, number);
    }
    const living = new Set(this.#world.instances.map(({ process }) => lifeOf(process)));
    const lost = this.#changes.findIndex(({ by, keptAt }) => keptAt === Infinity && living.has(by));
    if (lost >= 0) throw new Violation('each instance records its changes in the end', `change ${lost}`);
  }

  /** Asserts that a gap was received between the last change before a missing one, and the first change after it. */
  #assertGap(name: string, lines: readonly Line[], places: ReadonlyMap<Line, number>, missing: number): void {
    const { at, keptAt, era = '' } = this.#changes[missing]!;
    // An instance in an earlier era has not noticed that its master was away.
    const isInEarlierEra = (later: string): boolean => later !== era && this.#eras.get(later)! < keptAt;
    const placesOf = (isWanted: (change: Recorded) => boolean): number[] =>
      this.#changes.flatMap((change, number) => (isWanted(change) ? (places.get(number) ?? []) : []));
    const to = Math.min(
      Infinity,
      ...placesOf((later) => later.at > keptAt && !isInEarlierEra(later.era ?? era)),
    );
    const from = Math.max(-1, ...placesOf((earlier) => earlier.keptAt < at).filter((place) => place < to));
    if (lines.some((line, place) => line === GAP && place > from && place < to)) return;
    const detail = `${name} misses change ${missing}, recorded at ${at.toFixed()} and kept at ${keptAt.toFixed()}`;
    throw new Violation('no change is missing without a gap', detail);
  }

  /** Asserts that new changes of an instance came in their order, unless a gap came between them. */
  #assertOrder(name: string, lines: readonly Line[]): void {
    const known = new Set<Line>();
    let last = new Map<string, number>();
    for (const line of lines) {
      if (line === GAP) last = new Map();
      // Of a change that was sent again, the first copy may have been trimmed.
      if (line === GAP || known.has(line) || this.#changes[line]!.sent > 1) continue;
      known.add(line);
      const { by } = this.#changes[line]!;
      const before = last.get(by) ?? -1;
      if (line < before)
        throw new Violation('changes of an instance come in their order', `${name}: ${line} after ${before}`);
      last.set(by, line);
    }
  }

  #subscribe(name: string, awayMs: number): void {
    const { instances, after, simulation } = this.#world;
    const random = simulation.random.stream(name);
    let cursor = '0-0';
    let turn = 0;
    let leavesAt = 0;
    let reader = random.pick(instances);
    const poll = (): void => {
      if (this.#world.now > leavesAt) {
        reader = random.pick(instances);
        leavesAt = this.#world.now + random.between(0, 2 * STAY_MS);
      }
      const { server } = reader;
      const mine = ++turn;
      server?.process.post(0, `is read by ${name}`, () => {
        void server.feed?.log.read(cursor).then((batch) => {
          // A later poll means that the connection was lost.
          if (batch === undefined || mine !== turn) return;
          cursor = batch.entries.at(-1)?.id ?? cursor;
          this.#receive(
            name,
            batch.entries.map(({ line }) => JSON.parse(line) as Line),
          );
        });
      });
      const isLeaving = this.#world.now + POLL_MS > leavesAt;
      after(isLeaving ? random.between(POLL_MS, 2 * awayMs) : POLL_MS, name, poll);
    };
    poll();
  }

  /** Posts a batch to the receiver, which may be slow, or fail before or after it has received the batch. */
  #post(process: Process, body: string): Promise<Response> {
    const random = this.#world.simulation.random.stream(`post at ${this.#world.now}`);
    const { changes } = JSON.parse(body) as { changes: Line[] };
    const isLost = this.#receiverFails && random.chance(0.1);
    return new Promise((resolve, reject) => {
      this.#world.after(random.between(0, MAX_POST_MS), 'the receiver of the webhook', () => {
        if (!isLost) this.#receive(RECEIVER, changes);
        process.post(random.between(0, MAX_POST_MS), 'is answered by the receiver', () => {
          if (isLost || (this.#receiverFails && random.chance(0.1)))
            reject(new ServiceError('UPSTREAM_TIMEOUT', {}));
          else resolve(new Response());
        });
      });
    });
  }

  #receive(name: string, lines: readonly Line[]): void {
    const received = this.#received.get(name) ?? [];
    this.#received.set(name, received);
    received.push(...lines);
  }
}

const lifeOf = ({ name, life }: Process): string => `${name} ${life}`;
