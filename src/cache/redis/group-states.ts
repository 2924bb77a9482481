// Publishes changes and bans, reads group numbers, and enters eras.
import { groupsOf } from '../../time-slicer.js';
import { type NumberedBan, MAX_LISTED_BANS } from '../coherence/bans.js';
import { type Group, type GroupNumber, groupOf } from '../coherence/groups.js';
import { type Change, type KnownBans, fieldsOf, formatChange } from '../coherence/message.js';
import { BAN, CHANGE, ENTER, SYNC } from './coherence-scripts.js';
import type { RedisCommands } from './commands.js';
import { type Channels, GROUP_NAMES, groupNames, stateName } from './namespace.js';

/** Maximum number of groups per script, because a running script blocks all other Redis clients. */
const GROUPS_PER_SCRIPT = 128;

/**
 * Publishes a change. Returns its message number, and whether the replacement was stored. `call`: the
 * acknowledgement id; '' if none is expected. @throws Error when Redis has not confirmed the publication
 */
export async function publishChange(
  commands: RedisCommands,
  channels: Channels,
  { change, ...sender }: { change: Change; member: string; call: string },
): Promise<{ seq: number; isStored: boolean }> {
  const text = formatChange(change, sender);
  const [name, lifeMs, key] = fieldsOf(change);
  if (change.kind === 'ban') {
    const state = commands.bansName;
    const channel = channels.ofGroup('bans');
    const args = [runOf(commands, state), `${name} ${key}`, MAX_LISTED_BANS, channel, channels.publish, text];
    return { seq: Number(await commands.script(BAN, [state], args)), isStored: false };
  }
  const group = groupOf(key);
  const names = groupNames(commands.keyPrefix, key, group);
  const run = runOf(commands, names[1]);
  const { replacement } = change.kind === 'forget' ? change : {};
  const stored = replacement?.run === run ? [replacement.seq, replacement.bytes, replacement.lifeMs] : [];
  const args = [run, change.kind, key, name, lifeMs, channels.ofGroup(group), channels.publish];
  const reply = (await commands.script(CHANGE, names, [...args, text, ...stored])) as [string, number];
  return { seq: Number(reply[0]), isStored: reply[1] === 1 };
}

export async function readNumbers(commands: RedisCommands): Promise<Map<Group, GroupNumber>> {
  const size = commands.isCluster ? 1 : GROUPS_PER_SCRIPT;
  const replies = await Promise.all(
    groupsOf(GROUP_NAMES, size).map(async (groups) => {
      const names = groups.map((group) => stateName(commands.keyPrefix, group));
      const run = runOf(commands, names[0] ?? '');
      const numbers = (await commands.script(SYNC, names, [run])) as string[];
      return numbers.map((seq) => ({ run, seq: Number(seq) }));
    }),
  );
  const numbers = replies.flat();
  return new Map(GROUP_NAMES.map((group, at) => [group, numbers[at] ?? { run: '', seq: 0 }]));
}

/** A period during which the Redis server was continuously the master (../coherence/README.md). */
export interface Era {
  /** Random, and common to all instances that have entered the era. */
  name: string;
  /** Time since which no other server has been the master, as far as this instance knows (monotonic, ms). */
  since: number;
}

const BAN_EARLIER_ERAS: Change = { kind: 'ban', prefix: '', isSoft: true, number: 0 };

/**
 * Enters the era of the Redis server, and reads the bans. `known`: the member's previous era; '' for none.
 * `next`: name of the new era that starts if the server does not know `known`.
 */
export async function enterEra(
  commands: RedisCommands,
  channels: Channels,
  { member, known: from, next }: { member: string; known: string; next: string },
): Promise<{ era: string; bans: KnownBans }> {
  const name = commands.bansName;
  const run = runOf(commands, name);
  const text = formatChange(BAN_EARLIER_ERAS, { member, call: '' });
  const args = [run, from, next, channels.ofGroup('bans'), channels.publish, text, MAX_LISTED_BANS];
  const fields = (await commands.script(ENTER, [name], args)) as string[];
  const known: KnownBans = { kind: 'bans', run, seq: 0, floor: 0, bans: [] };
  let era = '';
  for (let at = 0; at < fields.length; at += 2) {
    const [field = '', value = ''] = [fields[at], fields[at + 1]];
    if (field === 'floor' || field === 'seq') known[field] = Number(value);
    else if (field === 'era') era = value;
    else if (field.startsWith('b:')) known.bans.push(banOf(Number(field.slice(2)), value));
  }
  return { era, bans: known };
}

const banOf = (number: number, text: string): NumberedBan => ({
  number,
  isSoft: text.startsWith('soft '),
  prefix: text.slice('soft '.length),
});

function runOf(commands: RedisCommands, name: string): string {
  const run = commands.runOf(name);
  if (run === undefined) throw new Error('the run id of the Redis server is not known');
  return run;
}
