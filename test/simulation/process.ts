// A simulated process with separate clocks and timers. A kill ends its life; a pause delays its events.
import { type Clock, createSteadyTime } from '../../src/clock.js';
import type { Scheduler } from './clock.js';
import type { Random } from './random.js';

export interface ProcessOptions {
  /** Wall clock error in ms. */
  wallOffsetMs?: number;
  /** Rate of both clocks: 1.05 gains 5%. */
  clockRate?: number;
  /** Maximum timer delay in ms. */
  timerLatenessMs?: number;
  /** Whether the process never uses promises, so that no jobs remain after its events. */
  isSynchronous?: boolean;
}

/**
 * `stopped`: SIGSTOP, where both clocks continue. `suspended`: a virtual machine whose monotonic clock stops.
 * `unnoticed`: a virtual machine whose wall clock stops as well.
 */
export type Pause = 'stopped' | 'suspended' | 'unnoticed';

/** Wall clock time at the start of a simulation (November 2023). */
export const EPOCH_MS = 1_700_000_000_000;

/** Duration of a pause that every process notices by one of its clocks, in ms. */
const NOTICEABLE_MS = 1100;

interface Held {
  label: string;
  run: () => void;
}

export class Process {
  readonly name: string;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #options: Required<ProcessOptions>;
  readonly #endings = new Set<() => void>();
  /** Number of starts and kills. Odd while the process is alive. */
  #life = 1;
  #pause: { kind: Pause; since: number } | undefined;
  #held: Held[] = [];
  #wallErrorMs: number;
  #monotonicLossMs = 0;
  #idleMs = 0;
  #unnoticedUntil = -Infinity;
  #resumedAt = -Infinity;

  constructor(name: string, scheduler: Scheduler, random: Random, options: ProcessOptions = {}) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#random = random.stream(name);
    this.#options = { wallOffsetMs: 0, clockRate: 1, timerLatenessMs: 1, isSynchronous: false, ...options };
    this.#wallErrorMs = this.#options.wallOffsetMs;
    const clocks = { wall: () => Math.floor(this.wallMs), monotonic: () => this.#monotonicMs };
    this.clock = {
      ...clocks,
      now: createSteadyTime(clocks),
      after: (ms, run) => this.#after(ms, run),
      randomId: () => [8, 4, 4, 4, 12].map((digits) => this.#random.hex(digits)).join('-'),
    };
  }

  get isAlive(): boolean {
    return this.#life % 2 === 1;
  }

  /** Total paused time, in ms of virtual time. */
  get idleMs(): number {
    return this.#idleMs + (this.#pause === undefined ? 0 : this.#scheduler.now - this.#pause.since);
  }

  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** Virtual time at which the last unnoticed pause ended, or Infinity during an unnoticed pause. */
  get unnoticedUntil(): number {
    return this.#pause?.kind === 'unnoticed' ? Infinity : this.#unnoticedUntil;
  }

  /** Virtual time at which the last pause ended that the process could notice. */
  get resumedAt(): number {
    return this.#resumedAt;
  }

  /** Number of the current life. Events of earlier lives are ignored. */
  get life(): number {
    return this.#life;
  }

  /** Virtual time, which processes cannot read. */
  get virtualMs(): number {
    return this.#scheduler.now;
  }

  /** Wall clock including fractions of a millisecond. */
  get wallMs(): number {
    const hiddenMs = this.#pause?.kind === 'unnoticed' ? this.#pausedMs : 0;
    return EPOCH_MS + this.#elapsedMs - hiddenMs + this.#wallErrorMs;
  }

  /** Returns the virtual time at which `clock.now` returned `time`, or an earlier one if it jumped since. */
  momentOf(time: number): number {
    return this.#scheduler.now - (this.clock.now() - time) / this.#options.clockRate;
  }

  /** Steps the wall clock forward or back. */
  stepWallClock(ms: number): void {
    this.#wallErrorMs += ms;
  }

  pause(kind: Pause = 'stopped'): void {
    if (this.#pause !== undefined || !this.isAlive) return;
    this.#scheduler.note(`${this.name} paused ${kind}`);
    this.#pause = { kind, since: this.#scheduler.now };
  }

  resume(): void {
    if (this.#pause === undefined) return;
    this.#scheduler.note(`${this.name} resumed`);
    const { kind, since } = this.#pause;
    this.#idleMs += this.#scheduler.now - since;
    if (kind !== 'stopped') this.#monotonicLossMs += this.#pausedMs;
    if (kind === 'unnoticed') this.#endUnnoticed();
    else if (this.#scheduler.now - since > NOTICEABLE_MS) this.#resumedAt = this.#scheduler.now;
    this.#pause = undefined;
    for (const { label, run } of this.#held.splice(0)) this.#schedule(0, label, run);
  }

  kill(): void {
    if (!this.isAlive) return;
    this.resume();
    this.#scheduler.note(`${this.name} killed`);
    this.#life++;
    for (const ending of [...this.#endings]) ending();
    this.#endings.clear();
  }

  /** Starts a new life after a kill. The clocks continue. */
  start(): void {
    if (this.isAlive) return;
    this.#scheduler.note(`${this.name} started`);
    this.#life++;
  }

  /** Calls `run` at the end of this life. @returns a function that cancels the call */
  onKill(run: () => void): () => void {
    this.#endings.add(run);
    return () => {
      this.#endings.delete(run);
    };
  }

  /** Posts an event to this process. It waits during a pause, and is dropped at the end of this life. */
  post(delayMs: number, label: string, run: () => void): void {
    if (!this.isAlive) return;
    const life = this.#life;
    const line = `${this.name} ${label}`;
    const whenRunning = (): void => {
      if (life !== this.#life) return;
      if (this.#pause === undefined) run();
      else this.#held.push({ label: line, run: whenRunning });
    };
    this.#schedule(delayMs, line, whenRunning);
  }

  /** Adds a line about this process to the trace. */
  note(line: string): void {
    this.#scheduler.note(`${this.name} ${line}`);
  }

  /** Ends a pause in which the wall clock stopped. */
  #endUnnoticed(): void {
    this.#wallErrorMs -= this.#pausedMs;
    this.#unnoticedUntil = this.#scheduler.now;
  }

  #schedule(delayMs: number, label: string, run: () => void): void {
    this.#scheduler.after(delayMs, label, run, !this.#options.isSynchronous);
  }

  #after(ms: number, run: () => void): () => void {
    const dueAt = this.#monotonicMs + Math.max(1, ms);
    let isCancelled = false;
    const arm = (): void => {
      const latenessMs = this.#random.between(0, this.#options.timerLatenessMs);
      this.post((dueAt - this.#monotonicMs) / this.#options.clockRate + latenessMs, 'timer', fire);
    };
    const fire = (): void => {
      if (isCancelled) return;
      // A timer must wait for the remaining time after a pause that stopped its clock.
      if (dueAt - this.#monotonicMs > 0.001) arm();
      else run();
    };
    arm();
    return () => {
      isCancelled = true;
    };
  }

  get #elapsedMs(): number {
    return this.#scheduler.now * this.#options.clockRate;
  }

  get #pausedMs(): number {
    if (this.#pause === undefined) return 0;
    return (this.#scheduler.now - this.#pause.since) * this.#options.clockRate;
  }

  get #monotonicMs(): number {
    const isStanding = this.#pause !== undefined && this.#pause.kind !== 'stopped';
    return this.#elapsedMs - this.#monotonicLossMs - (isStanding ? this.#pausedMs : 0);
  }
}
