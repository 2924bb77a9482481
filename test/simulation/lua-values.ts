// Lua values in JavaScript, converted from and to Redis replies, arguments and function results.
import { NotSimulated, ReplyError, type Reply, Status } from './redis-reply.js';
import { BOOLEAN, LIGHT_USERDATA, type LuaState, NIL, NUMBER, STRING, TABLE } from './lua-state.js';

/** The value of cjson.null. */
export const LIGHT_NULL = Symbol('light userdata 0');

export type LuaValue = undefined | boolean | number | string | typeof LIGHT_NULL | LuaTable;

export class LuaTable extends Map<LuaValue, LuaValue> {
  static of(items: readonly LuaValue[]): LuaTable {
    return new LuaTable(items.map((item, index) => [index + 1, item]));
  }
}

export function valueAt(lua: LuaState, index: number): LuaValue {
  switch (lua.typeAt(index)) {
    case NIL:
      return undefined;
    case BOOLEAN:
      return lua.c._lua_toboolean(lua.pointer, index) === 1;
    case NUMBER:
      return lua.numberAt(index);
    case STRING:
      return lua.textAt(index);
    case LIGHT_USERDATA:
      return LIGHT_NULL;
    case TABLE:
      return tableAt(lua, index);
    default:
      throw new NotSimulated('functions as arguments of a library');
  }
}

function tableAt(lua: LuaState, index: number): LuaTable {
  const table = new LuaTable();
  lua.c._lua_checkstack(lua.pointer, 4);
  lua.c._lua_pushvalue(lua.pointer, index);
  lua.c._lua_pushnil(lua.pointer);
  while (lua.c._lua_next(lua.pointer, -2) !== 0) {
    // Copies the key, because converting a number to text in place would end the iteration.
    lua.c._lua_pushvalue(lua.pointer, -2);
    table.set(valueAt(lua, -1), valueAt(lua, -2));
    lua.pop(2);
  }
  lua.pop(1);
  return table;
}

export function pushValue(lua: LuaState, value: LuaValue): void {
  const { c, pointer } = lua;
  c._lua_checkstack(pointer, 4);
  if (value === undefined) c._lua_pushnil(pointer);
  else if (value === LIGHT_NULL) c._lua_pushlightuserdata(pointer, 0);
  else if (typeof value === 'boolean') c._lua_pushboolean(pointer, Number(value));
  else if (typeof value === 'number') c._lua_pushnumber(pointer, value);
  else if (typeof value === 'string') lua.pushText(value);
  else pushTable(lua, value);
}

function pushTable(lua: LuaState, table: LuaTable): void {
  lua.c._lua_createtable(lua.pointer, 0, table.size);
  for (const [key, value] of table) {
    pushValue(lua, key);
    pushValue(lua, value);
    lua.c._lua_rawset(lua.pointer, -3);
  }
}

/** Converts a reply as Redis does for scripts: nil becomes false, a status or an error becomes a table. */
export function pushReply(lua: LuaState, reply: Reply): void {
  if (reply === null) pushValue(lua, false);
  else if (reply instanceof Status) pushValue(lua, new LuaTable([['ok', reply.text]]));
  else if (reply instanceof ReplyError) pushValue(lua, new LuaTable([['err', reply.message]]));
  else if (Array.isArray(reply)) pushItems(lua, reply);
  else pushValue(lua, reply);
}

function pushItems(lua: LuaState, items: readonly Reply[]): void {
  lua.c._lua_checkstack(lua.pointer, 4);
  lua.c._lua_createtable(lua.pointer, items.length, 0);
  for (const [index, item] of items.entries()) {
    pushReply(lua, item);
    lua.c._lua_rawseti(lua.pointer, -2, index + 1);
  }
}

/** Converts a script result as Redis does: numbers lose their fraction, and a table ends at its first nil. */
export function replyAt(lua: LuaState, index: number): Reply {
  switch (lua.typeAt(index)) {
    case STRING:
      return lua.textAt(index);
    case NUMBER:
      return Math.trunc(lua.numberAt(index)) + 0;
    case BOOLEAN:
      return lua.c._lua_toboolean(lua.pointer, index) === 1 ? 1 : null;
    case TABLE:
      return tableReplyAt(lua, index);
    default:
      return null;
  }
}

function tableReplyAt(lua: LuaState, index: number): Reply {
  lua.c._lua_checkstack(lua.pointer, 4);
  const error = fieldAt(lua, index, 'err');
  if (error !== undefined) return new ReplyError(error);
  const status = fieldAt(lua, index, 'ok');
  if (status !== undefined) return new Status(status);
  const items: Reply[] = [];
  for (let at = 1; ; at++) {
    lua.c._lua_rawgeti(lua.pointer, index, at);
    const isEnd = lua.typeAt(-1) === NIL;
    if (!isEnd) items.push(replyAt(lua, -1));
    lua.pop(1);
    if (isEnd) return items;
  }
}

function fieldAt(lua: LuaState, index: number, name: string): string | undefined {
  lua.c._lua_pushvalue(lua.pointer, index);
  lua.pushText(name);
  lua.c._lua_rawget(lua.pointer, -2);
  const text = lua.typeAt(-1) === STRING ? lua.textAt(-1) : undefined;
  lua.pop(2);
  return text;
}
