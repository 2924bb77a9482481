// native: hits over the native protocol, compared with HTTP hits on the same record from the same load
// driver.
import { isDeepStrictEqual } from 'node:util';
import { readMessage } from '../../../src/plugins/native/codec.js';
import { type Wire, WIRES, askOnce } from '../drive/callers-by-socket.js';
import { driveBySockets } from '../drive/drive.js';
import type { Peer } from '../peers/peer.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { PREFIX, nameOf, targetOf } from '../records.js';
import { assertRightAnswers } from './check.js';
import { takeTurns } from './rounds.js';
import type { Workload } from './workload.js';
import { decodeResponse } from '../../support/native-decoder.js';
import { freePort } from '../../support/free-port.js';

export const NAME_OF: Record<Wire, string> = {
  http: 'HTTP, connections kept alive',
  'http-close': 'HTTP, a connection for each request',
  'native-tcp': 'native TCP, a connection for each request',
  'native-udp': 'native UDP',
  'native-tunnel': 'native over HTTP, connections kept alive',
};

const HANDLE = `${PREFIX}/${nameOf(1)}`;

export const native: Workload = async (bench) => {
  const upstream = await bench.crew.start(startUpstream('demo', 10));
  const [tcp, udp] = [await freePort(), await freePort()];
  const env = {
    ...{ NATIVE_TCP_PORT: String(tcp), NATIVE_UDP_PORT: String(udp) },
    // Disables the limit, because all callers are in one network.
    NATIVE_UDP_BYTES_PER_SECOND: '0B',
  };
  const proxy = await bench.crew.start(startProxy({ upstreamUrl: upstream.url, env }));
  await assertRightAnswers(proxy, [targetOf(nameOf(1))], upstream.url);
  const portOf = {
    http: portIn(proxy.url),
    'http-close': portIn(proxy.url),
    'native-tcp': tcp,
    'native-udp': udp,
    'native-tunnel': portIn(proxy.url),
  };
  const peers: Peer[] = [];
  for (const wire of WIRES) {
    const asked = { wire, port: portOf[wire], handle: HANDLE };
    const expected = await rightAnswer(asked, upstream.url);
    const drive: Peer['drive'] = (seconds) => driveBySockets({ ...asked, expected, seconds });
    peers.push({ ...proxy, name: NAME_OF[wire], drive });
  }
  const rows = await takeTurns(bench, { peers, upstream });
  return { about: 'one handle, 64 callers of one load driver, by protocol', rows };
};

const portIn = (url: string): number => Number(new URL(url).port);

/** @throws Error if the response is not the upstream's record */
async function rightAnswer(
  asked: { wire: Wire; port: number; handle: string },
  upstreamUrl: string,
): Promise<Buffer> {
  const answer = await askOnce(asked);
  const wanted = (await (await fetch(upstreamUrl + targetOf(nameOf(1)))).json()) as Record<string, unknown>;
  const given = asked.wire.startsWith('native') ? nativeValues(answer) : httpValues(answer);
  if (isDeepStrictEqual(given, wanted['values'])) return answer;
  throw new Error(`${asked.wire} answers ${JSON.stringify(given)}, not ${JSON.stringify(wanted['values'])}`);
}

function nativeValues(bytes: Buffer): unknown {
  const response = decodeResponse(readMessage(bytes), { hasDigest: false });
  return response.ok && response.value.body.kind === 'record' ? response.value.body.values : response;
}

function httpValues(bytes: Buffer): unknown {
  const body = bytes.subarray(bytes.indexOf('\n') + 1).toString();
  return (JSON.parse(body) as Record<string, unknown>)['values'];
}
