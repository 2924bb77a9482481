// Runs scripts in Lua 5.1 as Redis does. All simulated servers share one Lua state, because scripts leave no
// data in it.
import { LIBRARIES } from './lua-libraries.js';
import { SANDBOX } from './lua-sandbox.js';
import { LuaState, NUMBER, STRING, TABLE } from './lua-state.js';
import { type LuaValue, pushReply, pushValue, replyAt, valueAt } from './lua-values.js';
import { ReplyError, type Reply, formatDouble } from './redis-reply.js';

/** The implementation of redis.call. */
export type Call = (args: readonly string[]) => Reply;

/** A compiled script, as a reference in the Lua registry. */
export interface Compiled {
  reference: number;
}

const BAD_ARGUMENTS = 'ERR Lua redis lib command arguments must be strings or integers';
const NO_ARGUMENTS = 'ERR Please specify at least one argument for this redis.call() call';

export class LuaVm {
  readonly #lua: LuaState;
  readonly #compiled = new Map<string, Compiled | ReplyError>();
  /** The globals visible to scripts, and the read-only table in front of them. */
  readonly #seen: number;
  readonly #environment: number;
  #call: Call = () => null;
  /** Exceptions thrown during a script. They are not Lua errors, and fail the test. */
  readonly #failures: unknown[] = [];

  private constructor(lua: LuaState) {
    this.#lua = lua;
    this.#addCall('call', true);
    this.#addCall('pcall', false);
    for (const [name, run] of Object.entries(LIBRARIES)) this.#addFunction(name, run);
    if (!lua.load(SANDBOX, '=sandbox') || lua.c._lua_pcall(lua.pointer, 0, 2, 0) !== 0) {
      throw new Error(lua.textAt(-1));
    }
    this.#environment = lua.keep();
    this.#seen = lua.keep();
  }

  static async create(): Promise<LuaVm> {
    return new LuaVm(await LuaState.create());
  }

  /** Compiles a source on its first use. */
  compile(source: string): Compiled | ReplyError {
    const known = this.#compiled.get(source) ?? this.#compile(source);
    this.#compiled.set(source, known);
    return known;
  }

  /** Runs a script. @throws the errors of `call` */
  run(script: Compiled, keys: readonly string[], args: readonly string[], call: Call): Reply {
    const lua = this.#lua;
    this.#call = call;
    lua.pushKept(this.#seen);
    this.#setTexts('KEYS', keys);
    this.#setTexts('ARGV', args);
    lua.pushKept(script.reference);
    const hasFailed = lua.c._lua_pcall(lua.pointer, 0, 1, 0) !== 0;
    const reply = hasFailed ? this.#errorOnTop() : replyAt(lua, -1);
    lua.c._lua_settop(lua.pointer, 0);
    const [failure] = this.#failures.splice(0);
    if (failure !== undefined) throw failure as Error;
    return reply;
  }

  #compile(source: string): Compiled | ReplyError {
    const lua = this.#lua;
    if (!lua.load(source, '@user_script')) {
      const message = lua.textAt(-1);
      lua.c._lua_settop(lua.pointer, 0);
      return new ReplyError(`ERR Error compiling script (new function): ${message}`);
    }
    lua.pushKept(this.#environment);
    lua.c._lua_setfenv(lua.pointer, -2);
    const reference = lua.keep();
    lua.c._lua_settop(lua.pointer, 0);
    return { reference };
  }

  /** Sets a list of strings as a field of the table on top of the stack. */
  #setTexts(name: string, texts: readonly string[]): void {
    const lua = this.#lua;
    lua.c._lua_createtable(lua.pointer, texts.length, 0);
    for (const [index, text] of texts.entries()) {
      lua.pushText(text);
      lua.c._lua_rawseti(lua.pointer, -2, index + 1);
    }
    lua.c._lua_setfield(lua.pointer, -2, lua.name(name));
  }

  /** Adds redis.call, which raises error replies, or redis.pcall, which returns them. */
  #addCall(name: string, areErrorsRaised: boolean): void {
    const lua = this.#lua;
    lua.setGlobalFunction(`host_${name}`, () => {
      const args = this.#callArguments();
      const reply = args instanceof ReplyError ? args : this.#guarded(() => this.#call(args));
      pushReply(lua, reply);
      return areErrorsRaised && reply instanceof ReplyError ? lua.c._lua_error(lua.pointer) : 1;
    });
  }

  #callArguments(): string[] | ReplyError {
    const lua = this.#lua;
    const count = lua.c._lua_gettop(lua.pointer);
    const args: string[] = [];
    for (let index = 1; index <= count; index++) {
      const type = lua.typeAt(index);
      if (type === NUMBER) args.push(formatDouble(lua.numberAt(index)));
      else if (type === STRING) args.push(lua.textAt(index));
      else return new ReplyError(BAD_ARGUMENTS);
    }
    return count === 0 ? new ReplyError(NO_ARGUMENTS) : args;
  }

  /** Adds a library function. Lua raises any ReplyError that the function throws. */
  #addFunction(name: string, run: (args: readonly LuaValue[]) => readonly LuaValue[]): void {
    const lua = this.#lua;
    lua.setGlobalFunction(`host_${name}`, () => {
      const results = this.#guarded(() => {
        const count = lua.c._lua_gettop(lua.pointer);
        return run(Array.from({ length: count }, (_, at) => valueAt(lua, at + 1)));
      });
      if (results instanceof ReplyError) {
        lua.pushText(results.message);
        return lua.c._lua_error(lua.pointer);
      }
      for (const result of results) pushValue(lua, result);
      return results.length;
    });
  }

  /** Catches exceptions, which must not pass through Lua frames. They are rethrown after the script. */
  #guarded<T>(run: () => T): T | ReplyError {
    try {
      return run();
    } catch (error) {
      if (error instanceof ReplyError) return error;
      this.#failures.push(error);
      return new ReplyError('ERR the simulation has failed');
    }
  }

  #errorOnTop(): ReplyError {
    const raised = this.#lua.typeAt(-1) === TABLE ? replyAt(this.#lua, -1) : null;
    return raised instanceof ReplyError ? raised : new ReplyError(`ERR ${this.#lua.textAt(-1)}`);
  }
}
