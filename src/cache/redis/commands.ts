// Redis commands with a hard timeout. After a failure, commands pause: an unresponsive Redis costs only one timeout.
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { type Clock, oneAtATime, repeat, systemClock, untilDeadline } from '../../clock.js';
import type { Context } from '../../context.js';
import { RUN_LENGTH } from '../entry.js';
import {
  type RedisAddress,
  type RedisConnections,
  type RedisMaster,
  type Subscription,
  type SubscriptionEvents,
  corkForTurn,
  openRedis,
  openSubscription,
} from './connections.js';
import {
  type OnTrouble,
  concernsOneCommand,
  createTroubleReport,
  infoField,
  isErrorReply,
  readRunId,
  riskyEviction,
  timeoutError,
} from './errors.js';
import { type Channels, type NamespaceOptions, claimPrefix, createChannels, stateName } from './namespace.js';

type CommandName = Parameters<Context['metrics']['countRedisError']>[0];

export interface RedisCommandsOptions extends RedisAddress, NamespaceOptions {
  commandTimeoutMs: number;
  /** Called with a command, or another operation, that has failed. */
  onError?: (command: CommandName) => void;
  /** Called once per failure reason, then at most once a minute. */
  onTrouble?: OnTrouble;
  /** Called at most once, with an eviction policy that may evict keys other than entries. */
  onEvictionPolicy?: ((policy: string) => void) | undefined;
  /** Called when commands are paused or resumed. */
  onState?: (isUp: boolean) => void;
  clock?: Clock | undefined;
  open?: ((place: RedisAddress) => RedisConnections) | undefined;
}

type Argument = string | number | Buffer;

const CHECK_EVERY_MS = 500;
/** Consecutive failed checks that trigger a new lookup of the masters. */
const MAX_FAILED_CHECKS = 6;

export class RedisCommands {
  readonly redis: Redis;
  readonly connections: RedisConnections;
  /** Prefix of every key. It may change while commands are paused. */
  keyPrefix: string;
  readonly #reportTrouble: (error: unknown) => void;
  readonly #runs: ServerRuns;
  readonly #clock: Clock;
  readonly #cancelCheck: () => void;
  #isUp = false;
  #isClosed = false;
  #failedChecks = 0;
  #isOwner = false;
  #hasFailed = false;

  constructor(private readonly options: RedisCommandsOptions) {
    const { clock = systemClock, open = openRedis } = options;
    this.#clock = clock;
    this.#reportTrouble = createTroubleReport(options.onTrouble, clock.monotonic);
    this.connections = open(options);
    this.redis = this.connections.commands;
    this.#runs = new ServerRuns(this.connections, clock, options.onEvictionPolicy);
    this.keyPrefix = options.keyPrefix;
    this.watch(this.redis);
    this.#cancelCheck = repeat(this.#clock, CHECK_EVERY_MS, this.#check);
  }

  isUp(): boolean {
    return this.#isUp;
  }

  get bansName(): string {
    return stateName(this.keyPrefix, 'bans');
  }

  get membersName(): string {
    return `${this.keyPrefix}members`;
  }

  /** The channels. Their prefix has the database number, because all databases share the channels. */
  get channels(): Channels {
    return createChannels(`${this.keyPrefix}${this.connections.database}:`, this.isCluster);
  }

  /** @throws Error when a master is not connected */
  masters(): RedisMaster[] {
    return this.connections.masters();
  }

  get isCluster(): boolean {
    return this.connections.isCluster;
  }

  /** Whether every master is connected and has a known run. */
  isConnected(): boolean {
    return this.redis.status === 'ready' && this.#runs.areKnown();
  }

  /** Whether the command connection was ever refused, lost or unresponsive; one still being opened has not failed. */
  hasEverFailed(): boolean {
    return this.#hasFailed;
  }

  command(name: string, ...args: Argument[]): Promise<unknown> {
    corkForTurn(this.redis);
    return this.redis.call(name, ...args);
  }

  /** Reads which master of a cluster holds which slot, unless the cluster does not reply in time. */
  async refreshSlots(): Promise<void> {
    await this.attempt(this.connections.refreshSlots(), CHECK_EVERY_MS).catch(() => undefined);
  }

  openSubscription(
    master: RedisMaster,
    channels: string[],
    events: SubscriptionEvents,
  ): Promise<Subscription> {
    const watch = (connection: Redis): void => this.watch(connection);
    return openSubscription(this.connections, { master, channels, watch }, events);
  }

  /**
   * Returns the run of the server responsible for the key; undefined if unknown. For the bans and the members, which have
   * eras, it is that of the process, so that they are common to instances of all versions.
   */
  runOf(name: string): string | undefined {
    const run = this.#runs.ofKey(name);
    return name === this.bansName || name === this.membersName ? run?.process : run?.term;
  }

  /** Returns the time since which the server responsible for the key surely is the master (monotonic, ms); Infinity if unknown. */
  masterSince(name: string): number {
    return this.#runs.ofKey(name)?.since ?? Infinity;
  }

  /** Runs a command. Never throws: a failure is counted, and the result is undefined. */
  async run<T>(
    name: CommandName,
    command: (redis: Redis) => Promise<T>,
    timeoutMs = this.options.commandTimeoutMs,
  ): Promise<T | undefined> {
    if (!this.#isUp) return undefined;
    corkForTurn(this.redis);
    try {
      return await this.attempt(command(this.redis), timeoutMs);
    } catch (error) {
      this.options.onError?.(name);
      if (isErrorReply(error)) this.#reportTrouble(error);
      if (!concernsOneCommand(error)) this.#setUp(false);
      return undefined;
    }
  }

  /**
   * Adds a timeout to a command. The ioredis timeout is the same for all commands and starts when a command is sent:
   * a cluster sends one automatic pipeline at a time, so a command behind a stuck pipeline would wait twice as long.
   *
   * @throws Error when it fails or times out
   */
  attempt<T>(command: Promise<T>, timeoutMs: number): Promise<T> {
    return untilDeadline(command, timeoutMs, timeoutError, this.#clock);
  }

  /** Runs a script by its digest. @throws Error when Redis fails */
  async script(source: string, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    corkForTurn(this.redis);
    try {
      return await this.redis.evalsha(digestOf(source), keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.redis.eval(source, keys.length, ...keys, ...args);
    }
  }

  /** Reports connection errors, and pauses commands when the command connection is lost. */
  watch(connection: Redis): void {
    connection.on('error', (error: unknown) => {
      this.options.onError?.('connect');
      this.#hasFailed ||= connection === this.redis;
      if (!this.#isUp) this.#reportTrouble(error);
    });
    connection.on('close', () => {
      if (connection !== this.redis) return;
      this.#hasFailed = true;
      this.#runs.clear();
      this.#setUp(false);
    });
    connection.on('ready', () => {
      if (connection === this.redis) void this.#check();
    });
  }

  /** Counts a failed heartbeat, and reports the reason if Redis replied with an error. */
  reportFailure(error: unknown): void {
    this.options.onError?.('heartbeat');
    if (isErrorReply(error)) this.#reportTrouble(error);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck();
    await this.attempt(this.redis.quit(), CHECK_EVERY_MS).catch(() => undefined);
    this.redis.disconnect();
  }

  readonly #check = oneAtATime(async () => {
    try {
      if (this.redis.status !== 'ready') throw timeoutError();
      await this.attempt(this.#probe(), Math.max(this.options.commandTimeoutMs, CHECK_EVERY_MS));
      this.#failedChecks = 0;
      this.#setUp(true);
    } catch (error) {
      this.#hasFailed ||= this.redis.status === 'ready';
      this.reportFailure(error);
      this.#setUp(false);
      if (++this.#failedChecks % MAX_FAILED_CHECKS === 0 || this.redis.status === 'end') this.rediscover();
    }
  });

  async #probe(): Promise<void> {
    await this.#runs.check();
    // Redis may lose the marker, so it is claimed periodically; a foreign prefix is tried again only after a restart.
    if (this.keyPrefix !== this.options.keyPrefix) return;
    this.keyPrefix = await claimPrefix(this.redis, this.options, this.#isOwner);
    this.#isOwner = true;
    if (this.keyPrefix !== this.options.keyPrefix) this.#setUp(false);
  }

  #setUp(isUp: boolean): void {
    if (this.#isUp === isUp || (isUp && this.#isClosed)) return;
    this.#isUp = isUp;
    // A deliberate close is not an outage.
    if (!this.#isClosed) this.options.onState?.(isUp);
  }

  rediscover(): void {
    if (!this.#isClosed) this.connections.rediscover();
  }
}

const digests = new Map<string, string>();

export function digestOf(source: string): string {
  const digest = digests.get(source) ?? createHash('sha1').update(source).digest('hex');
  digests.set(source, digest);
  return digest;
}

interface ServerRun {
  /** Changes with a restart. */
  process: string;
  /**
   * In a cluster it also changes when the server becomes the master again: it may not have received what another master
   * stored meanwhile, although it was its replica.
   */
  term: string;
  /** When the term was first seen (monotonic, ms). */
  since: number;
}

/** The run of each master, which changes with a restart or a failover. */
class ServerRuns {
  readonly #runs = new Map<Redis, ServerRun>();
  #hasWarned = false;

  constructor(
    private readonly connections: RedisConnections,
    private readonly clock: Clock,
    private readonly onEvictionPolicy: ((policy: string) => void) | undefined,
  ) {}

  areKnown(): boolean {
    try {
      return this.connections.masters().every(({ client }) => this.#runs.has(client));
    } catch {
      return false;
    }
  }

  ofKey(name: string): ServerRun | undefined {
    const client = this.connections.clientOf(name);
    return client && this.#runs.get(client);
  }

  clear(): void {
    this.#runs.clear();
  }

  /** Checks every known master, and reads the run id of new masters. @throws Error when a master does not reply */
  async check(): Promise<void> {
    const masters = this.connections.masters();
    for (const client of this.#runs.keys())
      if (!masters.some((master) => master.client === client)) this.#runs.delete(client);
    await Promise.all(
      masters.map(async ({ client }) => {
        const known = this.#runs.get(client);
        if (known === undefined) await this.#read(client);
        else if (!this.connections.isCluster) await client.ping();
        // A master also renames its history with its first replica, and an hour after its last: all instances use the new name.
        else this.#setRun(client, known.process, await client.info('replication'));
      }),
    );
  }

  #setRun(client: Redis, process: string, info: string): void {
    const history = infoField(info, 'master_replid') ?? '';
    const term = this.connections.isCluster ? digestOf(process + history).slice(0, RUN_LENGTH) : process;
    const known = this.#runs.get(client);
    const since = known?.term === term ? known.since : this.clock.monotonic();
    this.#runs.set(client, { process, term, since });
  }

  async #read(client: Redis): Promise<void> {
    const info = await client.info();
    const run = readRunId(info, this.connections.isCluster);
    client.once('close', () => this.#runs.delete(client));
    this.#setRun(client, run.slice(0, RUN_LENGTH), info);
    const policy = riskyEviction(info);
    if (this.#hasWarned || policy === undefined) return;
    this.#hasWarned = true;
    this.onEvictionPolicy?.(policy);
  }
}
