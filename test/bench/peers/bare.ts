// Starts the bare node:http listener that sends the proxy's own bytes.
import { fileURLToPath } from 'node:url';
import { freePort, start, untilAnswers } from '../children.js';
import { type Peer, peerOf } from './peer.js';

const PROGRAM = fileURLToPath(new URL('../programs/bare.js', import.meta.url));

export async function startBare(proxyUrl: string): Promise<Peer> {
  const port = await freePort();
  const child = start([process.execPath, PROGRAM, String(port), proxyUrl], { place: 'server' });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(`${url}/api/site`, child);
  return peerOf('bare node:http', url, child);
}
