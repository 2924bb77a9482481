// Starts the bare programs that measure Node's limits: a listener that sends the proxy's bytes, and a relay.
import { fileURLToPath } from 'node:url';
import { start, untilAnswers } from '../children.js';
import { type Peer, peerOf } from './peer.js';
import { freePort } from '../../support/free-port.js';

const programAt = (name: string): string => fileURLToPath(new URL(`../programs/${name}.js`, import.meta.url));

const startProgram = (name: string, program: string) =>
  async function startBareProgram(sourceUrl: string): Promise<Peer> {
    const port = await freePort();
    const child = start([process.execPath, programAt(program), String(port), sourceUrl], { place: 'server' });
    const url = `http://127.0.0.1:${port}`;
    await untilAnswers(`${url}/api/site`, child);
    return peerOf(name, url, child);
  };

export const startBare = startProgram('bare node:http', 'bare');

export const BARE_RELAY = 'a bare relay';
export const startBareRelay = startProgram(BARE_RELAY, 'relay');
