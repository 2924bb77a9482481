// PUT of a whole record or of single values.
import { RIGHT } from '../handle/value-data.js';
import { upperAscii } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import type { ValueReference } from '../handle/value.js';
import { javaException, parseJavaInt, readJson } from './java-input.js';
import { type DemoCall, type DemoReply, type World, notHere, refuseRequest, succeed } from './respond.js';
import { isAdminValue, prefixHandle } from './store.js';
import { type StoredValue, isSameValue, valueFromJson } from './value.js';

/** Handles a PUT: with `index` it changes values, otherwise it replaces or creates the record. */
export function writeHandle(call: DemoCall, world: World): DemoReply {
  const timestamp = world.store.nowSeconds();
  const values = valuesIn(readJson(bodyText(call)), call.handle).map((value) =>
    valueFromJson(value, timestamp),
  );
  const given = call.parameters.getAll('index');
  if (given.length === 0) return writeRecord(call, values, world);
  if (given[0] !== 'various') requireSameIndexes(given.map(parseJavaInt), values);
  else given.slice(1).forEach(parseJavaInt);
  return writeValues(call, values, world);
}

function requireSameIndexes(wanted: number[], values: StoredValue[]): void {
  const found = new Set(values.map(({ index }) => index));
  const isSame = wanted.length >= found.size && wanted.every((index) => found.has(index));
  if (!isSame) throw javaException('Mismatched indexes in PUT request');
}

/** Parses a PUT flag strictly: only `true` counts, and a bare flag is false. */
function queryFlag({ parameters }: DemoCall, name: string, byDefault: boolean): boolean {
  const given = parameters.get(name);
  return given === null ? byDefault : given.toLowerCase() === 'true';
}

function writeRecord(call: DemoCall, values: StoredValue[], world: World): DemoReply {
  const { store } = world;
  const handle = queryFlag(call, 'mintNewSuffix', false) ? `${call.handle}${world.newSuffix()}` : call.handle;
  const spelled = call.handle;
  if (!store.isHomed(handle)) return notHere(spelled);
  const refusal = indexRefusal(spelled, values);
  if (refusal) return refusal;
  const old = store.get(handle);
  if (old && !queryFlag(call, 'overwrite', true))
    return refuseRequest(RESPONSE_CODE.handleExists, { handle: spelled });
  if (call.identity === undefined)
    return refuseRequest(RESPONSE_CODE.authenticationNeeded, { handle: spelled });
  if (!mayWrite(handle, call.identity, world, { old, values }))
    return refuseRequest(RESPONSE_CODE.invalidAdmin, { handle: spelled });
  store.set(handle, keepingTimestamps(values, old ?? []));
  return succeed({ handle }, old ? 200 : 201);
}

function indexRefusal(handle: string, values: StoredValue[]): DemoReply | undefined {
  if (values.some(({ index }) => index <= 0))
    return refuseRequest(RESPONSE_CODE.invalidValue, { message: 'Value indexes must be positive', handle });
  const seen = new Set<number>();
  const twice = values.find(({ index }) => seen.size === seen.add(index).size);
  return twice && indexConflict(handle, twice.index);
}

const indexConflict = (handle: string, index: number): DemoReply =>
  refuseRequest(RESPONSE_CODE.valueExists, { message: `Index conflict for ${index}`, handle });

function mayWrite(
  handle: string,
  identity: ValueReference,
  world: World,
  { old, values }: { old: StoredValue[] | undefined; values: StoredValue[] },
): boolean {
  const mayCreate = (): boolean => mayCreateHandle(handle, identity, world);
  if (old === undefined || !handle.includes('/')) return mayCreate();
  const rights = world.rights.on(old, identity);
  if ((rights & RIGHT.addAdmin) !== 0 || hasRights(rights, neededForReplacing(old, values))) return true;
  return (rights & RIGHT.deleteHandle) !== 0 && mayCreate();
}

/** Whether the identity may create the handle; prefix handles need a server admin. */
function mayCreateHandle(handle: string, identity: ValueReference, { store, rights }: World): boolean {
  if (rights.isServerAdmin(identity)) return true;
  const slash = handle.indexOf('/');
  if (slash === -1 || handle.startsWith('0.')) return false;
  const prefixRecord = store.get(prefixHandle(handle.slice(0, slash))) ?? [];
  return (rights.on(prefixRecord, identity) & RIGHT.addHandle) !== 0;
}

const hasRights = (rights: number, needed: number): boolean => (rights & needed) === needed;

/** Returns the permissions needed to replace `old` with `values`. Unchanged values need none. */
function neededForReplacing(old: StoredValue[], values: StoredValue[]): number {
  const kept = new Set(values.map(({ index }) => index));
  const removed = old.filter(({ index }) => !kept.has(index));
  return neededForRemoving(removed) | neededForAdding(old, values);
}

function neededForAdding(old: StoredValue[], values: StoredValue[]): number {
  const needed = values.map((value): number => {
    const before = old.find(({ index }) => index === value.index);
    if (before === undefined) return isAdminValue(value) ? RIGHT.addAdmin : RIGHT.addValue;
    if (isSameValue(before, value)) return 0;
    return isAdminValue(value) || isAdminValue(before) ? RIGHT.modifyAdmin : RIGHT.modifyValue;
  });
  return needed.reduce((bits, bit) => bits | bit, 0);
}

export function neededForRemoving(values: StoredValue[]): number {
  return values
    .map((value): number => (isAdminValue(value) ? RIGHT.removeAdmin : RIGHT.removeValue))
    .reduce((bits, bit) => bits | bit, 0);
}

/** Preserves the timestamps of unchanged values (recordings "timestamps: …"). */
function keepingTimestamps(values: StoredValue[], old: StoredValue[]): StoredValue[] {
  return values.map((value) => old.find((before) => isSameValue(before, value)) ?? value);
}

function writeValues(call: DemoCall, values: StoredValue[], world: World): DemoReply {
  const { handle, identity } = call;
  if (!world.store.isHomed(handle)) return notHere(handle);
  if (values.length === 0)
    return refuseRequest(RESPONSE_CODE.invalidValue, { message: 'Value list was empty', handle });
  const refusal = indexRefusal(handle, values);
  if (refusal) return refusal;
  const old = world.store.get(handle);
  const present = values.find(({ index }) => old?.some((before) => before.index === index));
  if (present && !queryFlag(call, 'overwrite', true)) return indexConflict(handle, present.index);
  if (identity === undefined) return refuseRequest(RESPONSE_CODE.authenticationNeeded, { handle });
  if (old === undefined) return refuseRequest(RESPONSE_CODE.handleNotFound, { handle });
  if (!hasRights(world.rights.on(old, identity), neededForAdding(old, values)))
    return refuseRequest(RESPONSE_CODE.invalidAdmin, { handle });
  const untouched = old.filter(({ index }) => !values.some((value) => value.index === index));
  const merged = [...untouched, ...keepingTimestamps(values, old)];
  world.store.set(
    handle,
    merged.sort((one, other) => one.index - other.index),
  );
  return succeed({ handle }, present ? 200 : 201);
}

function bodyText({ contentType, body }: DemoCall): string {
  const [mediaType = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim());
  if (mediaType.toLowerCase() !== 'application/json')
    throw javaException(`Unsupported media type ${contentType ?? 'null'}`);
  const charset = parameters.find((parameter) => /^charset=/i.test(parameter))?.slice('charset='.length);
  return body.toString(charset?.toLowerCase() === 'iso-8859-1' ? 'latin1' : 'utf8');
}

/** Returns the values in the body of a PUT. A handle in the body must match the path. */
function valuesIn(json: unknown, handle: string): readonly unknown[] {
  if (Array.isArray(json)) return json;
  if (json === null || typeof json !== 'object') throw javaException('Invalid JSON in PUT request');
  if ('values' in json) return valuesOfRecord(json, handle);
  if ('index' in json) return [json];
  throw javaException('Invalid JSON in PUT request');
}

function valuesOfRecord(json: { values: unknown; handle?: unknown }, handle: string): readonly unknown[] {
  const named = json.handle;
  if (typeof named === 'string' && upperAscii(named) !== upperAscii(handle))
    throw javaException('Mismatched handle in PUT request');
  return Array.isArray(json.values) ? json.values : [];
}
