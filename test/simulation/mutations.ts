// Parts of the protocol, each taken out in turn: the simulator has to find what the part is there for.
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { CHANGE, RENEW } from '../../src/cache/redis/coherence-scripts.js';
import { RedisLink } from '../../src/cache/redis/link.js';
import { Members } from '../../src/cache/redis/members.js';
import { Publisher } from '../../src/cache/redis/publisher.js';
import { Receiver } from '../../src/cache/redis/receiver.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { WorkerLeases } from '../../src/workers/worker-leases.js';
import type { FaultName } from './fault-driver.js';
import { keepSkew } from './kept-skew.js';
import {
  awaitForEver,
  awaitNoLapsed,
  awaitNobodyAtFirst,
  believeGaps,
  passOverRenewed,
  readNumbersFirst,
  replace,
  together,
  trustBeforeFirstLease,
  withLease,
  withScripts,
} from './taken-out.js';

export interface Mutation {
  /** The row of the table of faults that the part answers, where it is one of them. */
  row?: number;
  /** Takes the part out. Gives what puts it back. */
  apply: () => () => void;
  /** The faults that it takes; all where nothing is given. */
  faults?: readonly FaultName[];
}

export const MUTATIONS: Record<string, Mutation> = {
  'members that renew count as having received': { row: 1, apply: passOverRenewed },
  'gaps are believed': { row: 1, apply: together(passOverRenewed, believeGaps), faults: ['message lost'] },
  'the barrier has no end': { row: 2, apply: awaitForEver },
  'the run of the server is not checked': {
    row: 3,
    apply: () => replace(RedisCommands, 'runOf', () => () => 'any'),
  },
  'the run of the server is not checked after a failover': {
    row: 4,
    apply: () => replace(RedisCommands, 'runOf', () => () => 'any'),
    faults: ['failover to a stale replica', 'process killed'],
  },
  'a writer without Redis acknowledges at once': {
    row: 5,
    apply: () => replace(RedisLink, 'returned', () => () => Promise.resolve(false)),
  },
  'a process trusts Redis before its first lease': { row: 6, apply: trustBeforeFirstLease },
  'the first writes wait for nobody': { row: 7, apply: awaitNobodyAtFirst },
  'a clock that is ahead is believed': { row: 8, apply: keepSkew },
  'the clocks are not compared': {
    row: 9,
    apply: withLease((now, end) => now >= end),
    faults: ['machine suspended'],
  },
  'an authoritative answer waits for nobody': {
    row: 10,
    apply: () =>
      replace(
        TieredStore,
        'replace',
        (original) =>
          function replaceAndGoOn(this: TieredStore, ...args) {
            original.apply(this, args).catch(() => undefined);
            return Promise.resolve(true);
          },
      ),
  },
  'the primary waits for no worker': {
    row: 11,
    apply: () => replace(WorkerLeases, 'renewed', () => () => undefined),
  },
  'the lease never ends': { apply: withLease(() => false) },
  'the barrier waits for nobody': {
    apply: () =>
      replace(Members, 'others', () => () => Promise.resolve({ ends: new Map(), incompleteForMs: 0 })),
  },
  'the age of the list is not looked at': {
    apply: () =>
      replace(
        Members,
        'others',
        (original) =>
          async function others(this: Members) {
            return { ...(await original.call(this)), incompleteForMs: 0 };
          },
      ),
  },
  'a return does not wait for lapsed members': { apply: awaitNoLapsed },
  'nothing is reported': {
    apply: () =>
      replace(
        Publisher,
        'report',
        () =>
          function report(pending) {
            pending.take(Infinity);
            return Promise.resolve();
          },
      ),
  },
  'late renewals count': {
    apply: withScripts((source, args) => [source, source === RENEW ? args.with(-1, 1e12) : args]),
  },
  'numbers are read before joining': { apply: readNumbersFirst },
  'fences of lapsed members are left': {
    apply: () => replace(Receiver, 'endFences', () => () => Promise.resolve([])),
  },
  'entries under a fence live on': {
    apply: withScripts((source, args) => [
      source === CHANGE ? source.replace("if change == 'raise' and kind", 'if false and kind') : source,
      args,
    ]),
  },
};
