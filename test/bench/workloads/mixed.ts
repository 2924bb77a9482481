// mixed: realistic requests, before an upstream that can do 1,000 requests a second.
import { startNginx } from '../peers/nginx.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { startVarnish } from '../peers/varnish.js';
import { nameOf, targetOf } from '../records.js';
import { everyHandle, mixedTargets } from '../targets.js';
import { assertRightAnswers } from './check.js';
import { takeTurns } from './rounds.js';
import { eachRound, warm } from './throughput.js';
import type { Workload } from './workload.js';

export const mixed: Workload = async (bench) => {
  const { handles, length, capacityPerSecond } = bench.plan;
  const upstream = await bench.crew.start(startUpstream('demo', handles));
  const peers = [
    await bench.crew.start(startProxy({ upstreamUrl: upstream.url })),
    await bench.crew.startIfInstalled(() => startNginx(upstream.url)),
    await bench.crew.startIfInstalled(() => startVarnish(upstream.url)),
  ].filter((peer) => peer !== undefined);
  // All of them know every record by its plain address before the load begins.
  await warm(bench, { peers, upstream, targets: everyHandle(handles) });
  const target = targetOf(nameOf(1));
  const questions = [
    `${target}?type=URL`,
    `${target}?index=1&index=2`,
    `${target}?auth=true`,
    targetOf('NONE'),
  ];
  for (const peer of peers) await assertRightAnswers(peer, questions, upstream.url);
  await upstream.tell(`limit=${capacityPerSecond}`);
  const targetsOf = eachRound((seed) => mixedTargets({ handles, length, seed }));
  const rows = await takeTurns(bench, { peers, targetsOf, upstream, hasNotFound: true });
  return {
    about:
      'the same with 30 % filters, 10 % other spellings, 5 % not found, 2 % auth=true, 1 % with credentials; ' +
      `the upstream does ${capacityPerSecond} requests a second`,
    rows,
  };
};
