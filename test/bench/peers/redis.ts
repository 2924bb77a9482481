// Starts a shared Redis.
import { assertInstalled, start, untilListens } from '../children.js';
import { type Peer, peerOf } from './peer.js';
import { freePort } from '../../support/free-port.js';

/** @throws Missing if redis-server is not installed */
export async function startRedis(): Promise<Peer> {
  assertInstalled('redis-server');
  const port = await freePort();
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = start(['redis-server', ...settings], { place: 'upstream' });
  await untilListens(port, child);
  return peerOf('Redis', `redis://127.0.0.1:${port}`, child);
}
