// The connections to Redis, and what is known of their health. Redis is a helper, never a need.
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { Absence } from './absence.js';
import { untilDeadline } from './deadline.js';
import { oneAtATime } from './one-at-a-time.js';
import { RedisBeat } from './redis-beat.js';
import { type RedisConnections, type RedisPlace, openRedis } from './redis-connections.js';
import { type NamespaceOptions, RedisNamespace } from './redis-namespace.js';
import { Complaints, isAboutThisCommand, isAnswer } from './redis-errors.js';

export interface RedisLinkOptions extends RedisPlace, NamespaceOptions {
  commandTimeoutMs: number;
  /** Called when Redis was lost and when it is back and every message is heard again. */
  onState?: (state: 'up' | 'lost') => void;
  /** Called each second when every message from before `at` was heard (ms of performance.now). */
  onProof?: (at: number) => void;
  onError?: (command: string) => void;
  /** Called with each reason once, until Redis is there again. */
  onTrouble?: (reason: string) => void;
  /** Runs when Redis can be asked again and before it is. */
  beforeUp?: () => Promise<void>;
  /** Runs again and again while Redis is there. */
  whileUp?: () => Promise<void>;
}

/** How often a sign of life is asked for. */
const HEARTBEAT_MS = 1000;
/** So many failed signs of life in a row make us look for the masters anew. */
const PATIENCE = 3;
/** Keys that were owed may be many: settling them gets more time than a command. */
const SETTLE_TIMEOUT_MS = 30_000;

/**
 * Runs commands with a hard time limit and stops asking while Redis does not answer, so that a
 * frozen Redis costs one time limit and not one per request. Messages are heard on a connection of
 * their own; only when every master answers and what is said there is heard does the link count as
 * up. A cluster of which one master is away is away: what is written meanwhile could not be told.
 */
export class RedisLink {
  readonly commands: Redis;
  readonly #connections: RedisConnections;
  readonly #options: RedisLinkOptions;
  readonly #namespace: RedisNamespace;
  readonly #beat: RedisBeat;
  readonly #absence = new Absence();
  readonly #onMessage: (message: string) => void;
  readonly #instance = randomUUID();
  readonly #heartbeat: NodeJS.Timeout;
  #messages: Redis;
  #up = false;
  #isClosed = false;
  #failedBeats = 0;
  readonly #complaints: Complaints;

  constructor(options: RedisLinkOptions, onMessage: (message: string) => void) {
    this.#options = options;
    this.#onMessage = onMessage;
    this.#complaints = new Complaints(options.onTrouble);
    this.#connections = openRedis(options);
    this.#namespace = new RedisNamespace(options, this.#connections.database);
    this.commands = this.#connections.commands;
    this.#beat = new RedisBeat({
      namespace: this.#namespace,
      instance: this.#instance,
      answer: (channel, text) => void this.commands.publish(channel, text).catch(() => undefined),
    });
    this.#watch(this.commands);
    this.#messages = this.#listen();
    this.#heartbeat = setInterval(() => void this.#check(), HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  isUp(): boolean {
    return this.#up;
  }

  /** Text before every key. It may be another one each time the link comes up. */
  get keyPrefix(): string {
    return this.#namespace.keyPrefix;
  }

  get #channel(): string {
    return `${this.#namespace.channelPrefix}forget`;
  }

  /** Channel and text that tell the other instances; what an instance says itself it does not hear. */
  announcement(message: string): [channel: string, text: string] {
    return [this.#channel, `${this.#instance} ${message}`];
  }

  /** Runs a command; trouble is undefined and a counter, never an exception. */
  async run<T>(name: string, command: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    if (!this.#up) return undefined;
    try {
      // ioredis starts its own time limit only when it sends, and it sends one automatic pipeline at a
      // time: a command behind a stuck one would wait for twice the limit.
      return await this.#inTime(command(this.commands));
    } catch (error) {
      this.#options.onError?.(name);
      if (!isAboutThisCommand(error)) this.lose();
      return undefined;
    }
  }

  /**
   * Settles when every other instance has obeyed what was said before, or does not trust its memory any more; or when
   * Redis is away for longer than a moment. What it missed it is told before it counts as up again.
   */
  async everybodyHeard(): Promise<void> {
    if (!this.#up) await this.#absence.passed();
    if (!this.#up) return;
    try {
      await this.#beat.callRoll(this.#connections.masters());
    } catch {
      this.#options.onError?.('call');
      this.lose();
    }
  }

  /** What Redis holds is not to be believed until it was found anew. */
  lose(): void {
    if (!this.#up) return;
    this.#up = false;
    this.#absence.began();
    this.#beat.endCalls();
    this.#options.onState?.('lost');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    await untilDeadline(this.#quit(), HEARTBEAT_MS, late).catch(() => undefined);
    this.commands.disconnect();
    this.#messages.disconnect();
  }

  async #quit(): Promise<void> {
    await this.#beat.leave(this.commands).catch(() => undefined);
    await Promise.allSettled([this.commands.quit(), this.#messages.quit()]);
  }

  #listen(): Redis {
    const messages = this.#connections.openMessages();
    this.#watch(messages);
    messages.on('message', (channel, message: string) => {
      if (this.#beat.hear(channel, message)) return;
      if (channel !== this.#channel || message.startsWith(this.#instance)) return;
      this.#onMessage(message.slice(this.#instance.length + 1));
    });
    return messages;
  }

  #watch(connection: Redis): void {
    connection.on('error', (error: unknown) => {
      this.#options.onError?.('connect');
      if (!this.#up) this.#complaints.tell(error);
    });
    connection.on('close', () => {
      this.lose();
    });
    connection.on('ready', () => {
      if (this.#isConnected()) void this.#check();
    });
  }

  readonly #check = oneAtATime(async () => {
    try {
      if (!this.#isConnected()) throw late();
      await this.#findOut();
      this.#failedBeats = 0;
    } catch (error) {
      this.#failed(error);
      this.#failedBeats++;
      const hasEnded = [this.commands, this.#messages].some(({ status }) => status === 'end');
      if (this.#failedBeats % PATIENCE === 0 || hasEnded) this.#lookAgain();
    }
  });

  /** No sign of life waits for it: where Redis is slow, each would come so late that nobody trusts its memory. */
  readonly #keep = oneAtATime(async () => {
    try {
      const claimed = this.#namespace.claim(this.commands);
      const [hasMoved] = await this.#inTime(Promise.all([claimed, this.#options.whileUp?.()]));
      if (hasMoved) this.lose();
    } catch (error) {
      this.#failed(error);
    }
  });

  #failed(error: unknown): void {
    this.#options.onError?.('heartbeat');
    this.lose();
    if (isAnswer(error)) this.#complaints.tell(error);
  }

  async #findOut(): Promise<void> {
    const wasUp = this.#up;
    if (!wasUp) await this.#inTime(this.#subscribe());
    await this.#prove();
    if (wasUp) {
      void this.#keep();
      return;
    }
    await untilDeadline(this.#options.beforeUp?.() ?? Promise.resolve(), SETTLE_TIMEOUT_MS, late);
    if (this.#messages.status !== 'ready') return;
    this.#up = true;
    this.#absence.ended();
    this.#complaints.clear();
    this.#options.onState?.('up');
  }

  /** What belongs to another upstream is not even heard of. */
  async #subscribe(): Promise<void> {
    await this.#namespace.claim(this.commands);
    await this.#messages.subscribe(this.#channel, ...this.#beat.channels);
  }

  async #prove(): Promise<void> {
    const tooLate = new AbortController();
    const at = performance.now();
    const proved = this.#beat.prove(this.#connections.masters(), tooLate.signal);
    await this.#inTime(proved).finally(() => {
      tooLate.abort();
    });
    this.#options.onProof?.(at);
  }

  #inTime<T>(promise: Promise<T>): Promise<T> {
    return untilDeadline(promise, this.#options.commandTimeoutMs, late);
  }

  /** SUBSCRIBE sent before ioredis has asked whether Redis is ready would be undone by that question. */
  #isConnected(): boolean {
    return this.commands.status === 'ready' && this.#messages.status === 'ready';
  }

  #lookAgain(): void {
    if (this.#isClosed) return;
    this.#connections.lookAgain();
    this.#messages.removeAllListeners();
    this.#messages.on('error', () => undefined);
    this.#messages.disconnect();
    this.#messages = this.#listen();
  }
}

const late = (): Error => new Error('Redis did not answer in time');
