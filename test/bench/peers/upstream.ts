// Starts the Handle server behind all peers.
import { fileURLToPath } from 'node:url';
import { start, untilAnswers } from '../children.js';
import { PREFIX } from '../records.js';
import { type Peer, peerOf } from './peer.js';
import { freePort } from '../../support/free-port.js';

export interface Upstream extends Peer {
  port: number;
  /** URL prefix for commands. */
  control: string;
  /** Sends a command such as `delay=500`, and resolves with the number in the response. */
  tell: (order: string) => Promise<number>;
  /** Resolves with the number of requests so far. */
  asked: () => Promise<number>;
}

const PROGRAM = fileURLToPath(new URL('../programs/upstream.js', import.meta.url));

/**
 * Starts an upstream: `demo` has `count` records under the prefix, `bare` responds to any handle as fast as
 * possible.
 */
export async function startUpstream(
  kind: 'demo' | 'bare',
  count = 0,
  prefix: string = PREFIX,
): Promise<Upstream> {
  const [port, controlPort] = [await freePort(), await freePort()];
  const what = [kind, String(count), prefix];
  const command = [process.execPath, PROGRAM, String(port), String(controlPort), ...what];
  const child = start(command, { place: 'upstream' });
  const control = `http://127.0.0.1:${controlPort}/?`;
  await untilAnswers(control, child);
  const tell = async (order: string): Promise<number> => Number(await (await fetch(control + order)).text());
  return {
    ...peerOf('the upstream itself', `http://127.0.0.1:${port}`, child),
    port,
    control,
    tell,
    asked: () => tell(''),
  };
}
