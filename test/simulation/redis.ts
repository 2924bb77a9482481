// A Redis server on virtual time: it runs commands and the production scripts, and delivers messages.
// Commands take no time; network.ts simulates the latency to clients.
import { createHash } from 'node:crypto';
import type { LuaVm } from './lua-vm.js';
import type { Process } from './process.js';
import type { Random } from './random.js';
import type { Command, ServerView } from './redis-command.js';
import { COMMANDS, NOT_IN_SCRIPTS } from './redis-commands.js';
import { Keyspace } from './redis-keyspace.js';
import { NotSimulated, ReplyError, type Reply, toInteger } from './redis-reply.js';
import { type Session, Subscriptions } from './redis-subscriptions.js';

/** The parts from which a Redis server is built. */
export interface RedisParts {
  host: Process;
  random: Random;
  vm: LuaVm;
}

/** A change as a replica receives it, with command and time. */
interface Replicated {
  at: number;
  timeMicros: number;
  command: Command;
  args: readonly string[];
}

const MAX_LAG_MS = 10_000;
const KEPT_CHANGES = 10_000;

const OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
const READ_ONLY = "READONLY You can't write against a read only replica.";

export class RedisServer {
  readonly host: Process;
  readonly subscriptions: Subscriptions;
  /** Whether memory is full and eviction is off, so that writes that need memory are rejected. */
  isFull = false;
  /** Whether the server has become a replica, which rejects writes. */
  isReadOnly = false;
  /** Whether a message to one subscriber is lost in transit. */
  losesMessage: (session: Session, channel: string, text: string) => boolean = () => false;
  readonly #random: Random;
  readonly #vm: LuaVm;
  readonly #scripts = new Map<string, string>();
  readonly #view: ServerView;
  #runId: string;
  #keyspace = new Keyspace();
  #replica: Keyspace;
  #changes: Replicated[] = [];
  #changesToKeep = KEPT_CHANGES;
  #scriptCount = 0;

  constructor({ host, random, vm }: RedisParts, keyspace = new Keyspace()) {
    this.host = host;
    this.#random = random.stream(host.name);
    this.#vm = vm;
    this.#keyspace = keyspace;
    this.#replica = keyspace.copy();
    this.#runId = this.#random.hex(40);
    this.subscriptions = new Subscriptions((session, channel, text) =>
      this.losesMessage(session, channel, text),
    );
    this.#view = {
      keyspace: this.#keyspace,
      timeMicros: () => this.#timeMicros,
      info: (section) => this.#info(section),
      publish: (channel, text, isSharded) => this.subscriptions.publish(channel, text, isSharded),
      loadScript: (source) => this.#loadScript(source),
    };
  }

  get runId(): string {
    return this.#runId;
  }

  get keyspace(): Keyspace {
    this.#keyspace.now = this.#nowMs;
    return this.#keyspace;
  }

  get scriptCount(): number {
    return this.#scriptCount;
  }

  /** Runs a client command, given as byte strings (latin1, one character per byte). */
  execute(session: Session, [name = '', ...args]: readonly string[]): Reply {
    const upper = name.toUpperCase();
    this.#keyspace.now = this.#nowMs;
    const subscribed = this.subscriptions.execute(session, upper, args);
    if (subscribed !== undefined) return subscribed;
    if (upper === 'EVAL' || upper === 'EVALSHA') return this.#evaluate(upper, args);
    const command = COMMANDS.get(upper);
    if (command === undefined) throw new NotSimulated(`the command ${name}`);
    if (args.length < command.min || args.length > command.max) {
      return new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    }
    return this.#refusal(command, false) ?? this.#run(command, args);
  }

  /** Returns a copy of the data, from which the server can restart. */
  dump(): Keyspace {
    return this.#keyspace.copy();
  }

  /** Restarts after a kill with a new run id, empty or from an old dump, without scripts or subscribers. */
  restart(dump = new Keyspace()): void {
    this.host.start();
    this.#runId = this.#random.hex(40);
    this.#scripts.clear();
    this.subscriptions.clear();
    this.#hold(dump.copy());
  }

  /** Returns the data of a replica with this lag, for a failover to promote. */
  replica(lagMs: number): Keyspace {
    if (lagMs > MAX_LAG_MS) throw new NotSimulated(`a replica that lags by ${lagMs} ms`);
    const replica = this.#replica.copy();
    for (const change of this.#changes)
      if (change.at <= this.host.virtualMs - lagMs) this.#apply(change, replica);
    return replica;
  }

  /** Deletes a key as an eviction does, without a message. */
  evict(key: string): boolean {
    return this.#keyspace.delete(key);
  }

  #hold(keyspace: Keyspace): void {
    this.#keyspace = keyspace;
    this.#view.keyspace = keyspace;
    this.#replica = keyspace.copy();
    this.#changes = [];
  }

  #evaluate(name: string, [script = '', count = '', ...rest]: readonly string[]): Reply {
    const source = name === 'EVAL' ? script : this.#scripts.get(script.toLowerCase());
    if (source === undefined) return new ReplyError('NOSCRIPT No matching script. Please use EVAL.');
    const keyCount = toKeyCount(count, rest.length);
    if (keyCount instanceof ReplyError) return keyCount;
    const compiled = this.#vm.compile(source);
    if (compiled instanceof ReplyError) return compiled;
    if (name === 'EVAL') this.#loadScript(source);
    this.#scriptCount++;
    let hasWritten = false;
    return this.#vm.run(compiled, rest.slice(0, keyCount), rest.slice(keyCount), ([called = '', ...args]) => {
      const command = commandInScript(called, args);
      if (command instanceof ReplyError) return command;
      const refusal = this.#refusal(command, hasWritten);
      if (refusal !== undefined) return refusal;
      hasWritten ||= command.effect !== 'read';
      return this.#run(command, args);
    });
  }

  #refusal({ effect }: Command, hasScriptWritten: boolean): ReplyError | undefined {
    if (this.isReadOnly && effect !== 'read') return new ReplyError(READ_ONLY);
    return this.isFull && effect === 'grow' && !hasScriptWritten ? new ReplyError(OUT_OF_MEMORY) : undefined;
  }

  #run(command: Command, args: readonly string[]): Reply {
    if (command.effect !== 'read') this.#replicate(command, args);
    return run(command, this.#view, args);
  }

  #replicate(command: Command, args: readonly string[]): void {
    const at = this.host.virtualMs;
    this.#changes.push({ at, timeMicros: this.#timeMicros, command, args });
    if (this.#changes.length < this.#changesToKeep) return;
    const isRecent = (change: Replicated): boolean => change.at > at - MAX_LAG_MS;
    for (const change of this.#changes) if (!isRecent(change)) this.#apply(change, this.#replica);
    this.#changes = this.#changes.filter(isRecent);
    this.#changesToKeep = 2 * this.#changes.length + KEPT_CHANGES;
  }

  #apply({ timeMicros, command, args }: Replicated, keyspace: Keyspace): void {
    keyspace.now = Math.floor(timeMicros / 1000);
    run(command, { ...this.#view, keyspace }, args);
  }

  #loadScript(source: string): string {
    const sha = createHash('sha1').update(source, 'latin1').digest('hex');
    this.#scripts.set(sha, source);
    return sha;
  }

  get #timeMicros(): number {
    return Math.floor(this.host.wallMs * 1000);
  }

  get #nowMs(): number {
    return Math.floor(this.host.wallMs);
  }

  #info(section: string): string {
    const sections: Record<string, string> = {
      server: `# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:${this.#runId}\r\n`,
      memory: `# Memory\r\nmaxmemory_policy:${this.isFull ? 'noeviction' : 'volatile-lru'}\r\n`,
      replication: `# Replication\r\nrole:${this.isReadOnly ? 'slave' : 'master'}\r\nmaster_replid:${this.#runId}\r\n`,
    };
    const isAll = ['default', 'all', 'everything'].includes(section);
    return isAll ? Object.values(sections).join('\r\n') : (sections[section] ?? '');
  }
}

function run(command: Command, view: ServerView, args: readonly string[]): Reply {
  try {
    return command.run(view, args);
  } catch (error) {
    if (error instanceof ReplyError) return error;
    throw error;
  }
}

function toKeyCount(text: string, given: number): number | ReplyError {
  try {
    const count = toInteger(text);
    if (count > given) return new ReplyError("ERR Number of keys can't be greater than number of args");
    return count < 0 ? new ReplyError("ERR Number of keys can't be negative") : count;
  } catch (error) {
    if (error instanceof ReplyError) return error;
    throw error;
  }
}

function commandInScript(name: string, args: readonly string[]): Command | ReplyError {
  const upper = name.toUpperCase();
  if (NOT_IN_SCRIPTS.has(upper)) return new ReplyError('ERR This Redis command is not allowed from script');
  const command = COMMANDS.get(upper);
  if (command === undefined) throw new NotSimulated(`the command ${name}`);
  if (args.length >= command.min && args.length <= command.max) return command;
  return new ReplyError('ERR Wrong number of args calling Redis command from script');
}
