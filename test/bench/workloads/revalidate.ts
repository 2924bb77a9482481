// revalidate: the hot load with the record's ETag, as from a caching client, compared with the plain hot
// load.
import { writeTargets } from '../drive/drive.js';
import type { Peer } from '../peers/peer.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { nameOf, targetOf } from '../records.js';
import { REVALIDATED } from '../targets.js';
import { assertRightAnswers } from './check.js';
import { takeTurns } from './rounds.js';
import type { Workload } from './workload.js';

export const revalidate: Workload = async (bench) => {
  const upstream = await bench.crew.start(startUpstream('demo', 10));
  const proxy = await bench.crew.start(startProxy({ upstreamUrl: upstream.url }));
  const target = targetOf(nameOf(1));
  await assertRightAnswers(proxy, [target], upstream.url);
  const etag = await etagOf(proxy, target);
  const targets = writeTargets([target]);
  const known = { ...proxy, name: '… 304', targets: writeTargets([`${REVALIDATED}${target} ${etag}`]) };
  const rows = await takeTurns(bench, { peers: [proxy, known], targetsOf: () => targets, upstream });
  return { about: 'one handle: a hit with the record, and with the ETag of the record', rows };
};

/** @throws Error unless the proxy responds to the ETag with 304 */
async function etagOf({ url }: Peer, target: string): Promise<string> {
  const etag = (await fetch(url + target)).headers.get('etag') ?? '';
  const { status } = await fetch(url + target, { headers: { 'If-None-Match': etag } });
  if (status !== 304) throw new Error(`${target} with the ETag ${etag} is ${status}, not 304`);
  return etag;
}
