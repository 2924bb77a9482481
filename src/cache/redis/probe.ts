// Tries Redis once, over a connection of its own.
import { untilDeadline } from '../clock.js';
import { type RedisAddress, openRedis } from './connections.js';
import { timeoutError } from './errors.js';

/** ioredis gives up a connection after 2 s; a login and two commands follow. */
const PROBE_TIMEOUT_MS = 5000;

/** @returns the version of the server, unless this user may not read it. @throws Error when Redis cannot be used */
export async function probeRedis(address: RedisAddress): Promise<string | undefined> {
  const { commands } = openRedis(address);
  // It goes on with trying: only the first error counts.
  const opened = new Promise((resolve, reject) => {
    commands.on('error', reject).once('ready', resolve);
  });
  const work = async (): Promise<string> => {
    await opened;
    await commands.ping();
    return commands.info('server').catch(() => '');
  };
  try {
    const info = await untilDeadline(work(), PROBE_TIMEOUT_MS, timeoutError);
    return /^redis_version:(\S+)/m.exec(info)?.[1];
  } finally {
    commands.disconnect();
  }
}
