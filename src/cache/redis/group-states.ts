// Publishes changes and reads group states: the only caller of the scripts that change them.
import { type NumberedBan, MAX_BANS } from '../coherence/bans.js';
import { type Group, type GroupNumber, groupOf } from '../coherence/groups.js';
import { type Change, type KnownBans, formatChange } from '../coherence/message.js';
import { BAN, CHANGE, READ_BANS, SYNC } from './coherence-scripts.js';
import type { LinkCommands } from './commands.js';
import { type Channels, GROUP_NAMES, groupNames, stateName } from './namespace.js';
/** Small, because Redis serves no other client while a script runs. */
const GROUPS_PER_SCRIPT = 128;

interface Publication {
  change: Change;
  member: string;
  /** Id for acknowledgements; '' when none is expected. */
  call: string;
  /** Wall clock of the sender (ms). */
  now: number;
}

/** Returns the number of the message. @throws Error when Redis has not confirmed the publication */
export async function publishChange(
  commands: LinkCommands,
  channels: Channels,
  { change, now, ...sender }: Publication,
): Promise<number> {
  const text = formatChange(change, sender);
  if (change.kind === 'ban') {
    const name = stateName(commands.keyPrefix, 'bans');
    const ban = `${change.isSoft ? 'soft' : 'hard'} ${change.prefix}`;
    const args = [runOf(commands, name), ban, MAX_BANS, channels.ofGroup('bans'), channels.publish, text];
    return Number(await commands.script(BAN, [name], args));
  }
  const names = groupNames(commands.keyPrefix, change.key);
  const [fence, lifeMs] = ['fence' in change ? change.fence : '-', 'lifeMs' in change ? change.lifeMs : 0];
  const channel = channels.ofGroup(groupOf(change.key));
  const args = [
    runOf(commands, names[1]),
    change.kind,
    change.key,
    fence,
    lifeMs,
    now,
    channel,
    channels.publish,
  ];
  return Number(await commands.script(CHANGE, names, [...args, text]));
}

/** The number of the last message of each group. */
export async function readNumbers(commands: LinkCommands): Promise<Map<Group, GroupNumber>> {
  const size = commands.isCluster ? 1 : GROUPS_PER_SCRIPT;
  const parts = Array.from({ length: Math.ceil(GROUP_NAMES.length / size) }, (_, part) =>
    GROUP_NAMES.slice(part * size, (part + 1) * size),
  );
  const replies = await Promise.all(
    parts.map(async (groups) => {
      const names = groups.map((group) => stateName(commands.keyPrefix, group));
      const run = runOf(commands, names[0] ?? '');
      const numbers = (await commands.script(SYNC, names, [run])) as string[];
      return numbers.map((seq) => ({ run, seq: Number(seq) }));
    }),
  );
  const numbers = replies.flat();
  return new Map(GROUP_NAMES.map((group, at) => [group, numbers[at] ?? { run: '', seq: 0 }]));
}

export async function readBans(commands: LinkCommands): Promise<KnownBans> {
  const name = stateName(commands.keyPrefix, 'bans');
  const fields = (await commands.script(READ_BANS, [name], [runOf(commands, name)])) as string[];
  const known: KnownBans = { kind: 'bans', run: runOf(commands, name), seq: 0, floor: 0, bans: [] };
  for (let at = 0; at < fields.length; at += 2) {
    const [field = '', value = ''] = [fields[at], fields[at + 1]];
    if (field === 'floor' || field === 'seq') known[field] = Number(value);
    else if (field.startsWith('b:')) known.bans.push(banOf(Number(field.slice(2)), value));
  }
  return known;
}

const banOf = (number: number, text: string): NumberedBan => ({
  number,
  isSoft: text.startsWith('soft '),
  prefix: text.slice('soft '.length),
});

function runOf(commands: LinkCommands, name: string): string {
  const run = commands.runOf(name);
  if (run === undefined) throw new Error('the run id of the Redis server is not known');
  return run;
}
