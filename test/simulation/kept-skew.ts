// Mutation: disables the clock-skew correction for entries stored by an instance with a fast clock.
import type { Redis } from 'ioredis';
import type { Times } from '../../src/cache/entry.js';
import { type CommandName, RedisCommands } from '../../src/cache/redis/commands.js';
import { RedisStore } from '../../src/cache/redis/store.js';
import { replace, together } from './mutation-tools.js';

const KEY_LENGTH_AT = 33;
const KEY_AT = 69;

/** Restores the stored times of an entry, which an instance with a fast clock may have set. */
export const keepSkew = (): (() => void) => {
  const times = new Map<string, Times & { deleteAt: number }>();
  const note = (buffer: Buffer): void => {
    const key = buffer.toString('utf8', KEY_AT, KEY_AT + buffer.readUInt32BE(KEY_LENGTH_AT));
    const [requestedAt, staleAt, deleteAt] = [9, 17, 25].map((at) => buffer.readDoubleBE(at));
    times.set(key, { requestedAt: requestedAt ?? 0, staleAt: staleAt ?? 0, deleteAt: deleteAt ?? 0 });
  };
  return together(
    () =>
      replace(
        RedisCommands,
        'run',
        (original) =>
          async function run<T>(
            this: RedisCommands,
            name: CommandName,
            command: (redis: Redis) => Promise<T>,
          ) {
            const reply = await original.call(this, name, command);
            const buffer = name === 'get' ? (reply as [[Buffer | null]] | undefined)?.[0][0] : undefined;
            if (buffer) note(buffer);
            return reply as T | undefined;
          },
      ),
    () =>
      replace(
        RedisStore,
        'get',
        (original) =>
          async function get(this: RedisStore, key) {
            const found = await original.call(this, key);
            const { entry } = found;
            const known = times.get(key);
            const isSkewed = entry && known && entry.staleAt > 0 && known.requestedAt > entry.requestedAt;
            return { ...found, entry: isSkewed ? { ...entry, ...known } : entry };
          },
      ),
  )();
};
