// A Lua 5.1 state: the C library compiled to WebAssembly, called through its C API. Strings are byte
// strings (latin1, one character per byte).
import { LuaApi } from 'wasmoon-lua5.1';

const GLOBALS = -10_002;
const REGISTRY = -10_000;
const SCRATCH_BYTES = 1 << 16;

export const NIL = 0;
export const BOOLEAN = 1;
export const LIGHT_USERDATA = 2;
export const NUMBER = 3;
export const STRING = 4;
export const TABLE = 5;

type Pushed<T extends unknown[]> = (state: number, ...args: T) => void;
type Asked<T extends unknown[]> = (state: number, ...args: T) => number;

/** Functions of the Lua C API. A state is a pointer. Negative stack indexes count from the top. */
interface LuaC {
  HEAPU8: Uint8Array;
  addFunction: (run: (state: number) => number, signature: string) => number;
  _malloc: (bytes: number) => number;
  _free: (pointer: number) => void;
  _luaL_newstate: () => number;
  _luaL_openlibs: Pushed<[]>;
  _luaL_loadbuffer: Asked<[bytes: number, size: number, name: number]>;
  _luaL_ref: Asked<[table: number]>;
  _lua_checkstack: Asked<[size: number]>;
  _lua_createtable: Pushed<[items: number, fields: number]>;
  _lua_error: Asked<[]>;
  _lua_gettop: Asked<[]>;
  _lua_next: Asked<[table: number]>;
  _lua_objlen: Asked<[index: number]>;
  _lua_pcall: Asked<[args: number, results: number, handler: number]>;
  _lua_pushboolean: Pushed<[value: number]>;
  _lua_pushcclosure: Pushed<[run: number, upvalues: number]>;
  _lua_pushlightuserdata: Pushed<[pointer: number]>;
  _lua_pushlstring: Pushed<[bytes: number, size: number]>;
  _lua_pushnil: Pushed<[]>;
  _lua_pushnumber: Pushed<[value: number]>;
  _lua_pushvalue: Pushed<[index: number]>;
  _lua_rawget: Pushed<[table: number]>;
  _lua_rawgeti: Pushed<[table: number, index: number]>;
  _lua_rawset: Pushed<[table: number]>;
  _lua_rawseti: Pushed<[table: number, index: number]>;
  _lua_setfenv: Asked<[index: number]>;
  _lua_setfield: Pushed<[table: number, name: number]>;
  _lua_settop: Pushed<[index: number]>;
  _lua_toboolean: Asked<[index: number]>;
  _lua_tolstring: Asked<[index: number, size: number]>;
  _lua_tonumber: Asked<[index: number]>;
  _lua_type: Asked<[index: number]>;
}

export class LuaState {
  readonly c: LuaC;
  readonly pointer: number;
  readonly #names = new Map<string, number>();
  #bytes: Buffer = Buffer.alloc(0);
  #scratch: number;
  #scratchBytes = SCRATCH_BYTES;

  private constructor(c: LuaC) {
    this.c = c;
    this.pointer = c._luaL_newstate();
    this.#scratch = c._malloc(SCRATCH_BYTES);
    c._luaL_openlibs(this.pointer);
  }

  static async create(): Promise<LuaState> {
    // The published type omits the module's members.
    const api = (await LuaApi.initialize()) as unknown as { module: LuaC };
    return new LuaState(api.module);
  }

  /** Compiles a chunk and pushes it. @returns false if an error message was pushed instead */
  load(source: string, chunkName: string): boolean {
    this.pushText(source);
    const bytes = this.c._lua_tolstring(this.pointer, -1, 0);
    return this.c._luaL_loadbuffer(this.pointer, bytes, source.length, this.name(chunkName)) === 0;
  }

  /** Defines a global function that reads arguments from the stack and returns the number of results. */
  setGlobalFunction(name: string, run: () => number): void {
    this.c._lua_pushcclosure(this.pointer, this.c.addFunction(run, 'ii'), 0);
    this.c._lua_setfield(this.pointer, GLOBALS, this.name(name));
  }

  /** Pops the top value into the registry. @returns its reference */
  keep(): number {
    return this.c._luaL_ref(this.pointer, REGISTRY);
  }

  pushKept(reference: number): void {
    this.c._lua_rawgeti(this.pointer, REGISTRY, reference);
  }

  pop(count: number): void {
    this.c._lua_settop(this.pointer, -1 - count);
  }

  typeAt(index: number): number {
    return this.c._lua_type(this.pointer, index);
  }

  /** Returns the string at an index. A number there is converted to a string in place. */
  textAt(index: number): string {
    const from = this.c._lua_tolstring(this.pointer, index, 0);
    if (from === 0) return '';
    return this.#memory().toString('latin1', from, from + this.c._lua_objlen(this.pointer, index));
  }

  numberAt(index: number): number {
    return this.c._lua_tonumber(this.pointer, index);
  }

  pushText(text: string): void {
    if (text.length > this.#scratchBytes) this.#growScratch(text.length);
    this.#memory().write(text, this.#scratch, 'latin1');
    this.c._lua_pushlstring(this.pointer, this.#scratch, text.length);
  }

  /** Returns a pointer to a null-terminated string that is never freed. */
  name(text: string): number {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const made = this.c._malloc(text.length + 1);
    this.#memory().write(`${text}\0`, made, 'latin1');
    this.#names.set(text, made);
    return made;
  }

  #growScratch(bytes: number): void {
    this.c._free(this.#scratch);
    this.#scratch = this.c._malloc(bytes);
    this.#scratchBytes = bytes;
  }

  /** Returns the memory. Memory growth replaces the buffer. */
  #memory(): Buffer {
    const { buffer } = this.c.HEAPU8;
    if (this.#bytes.buffer !== buffer) this.#bytes = Buffer.from(buffer);
    return this.#bytes;
  }
}
