// Connects ePIC v2 to the resolver, the locks and the upstream client that the record interface uses.
import type { Coordination } from '../coordination/coordination.js';
import { lockAfterRead } from '../coordination/key-lock.js';
import type { Config } from '../config/schema.js';
import { allowsDeletion } from '../record/deletion.js';
import type { WithBody } from '../http/request-body.js';
import type { Resolver } from '../resolver/resolver.js';
import type { RecordClient } from '../upstream/record-client.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import type { V2Settings } from '../v2/deps.js';
import { type V2Routes, createV2Routes } from '../v2/routes.js';
import { type Parts, reportUnexpected } from './parts.js';

interface V2Parts {
  resolver: Resolver<unknown>;
  coordination: Pick<Coordination, 'lock' | 'unclaimed'>;
  records: RecordClient;
  withBody: WithBody;
  reverse?: { lookup: ReverseLookup };
}

export function makeV2(parts: Parts, made: V2Parts): V2Routes {
  const { config, metrics, now } = parts;
  const { resolver, coordination, records, withBody, reverse } = made;
  const rules = { ...config.deletion, allowedFor: config.deletion.allowedFor?.split(',') ?? [] };
  return createV2Routes({
    settings: settingsOf(config),
    withBody,
    records,
    resolver,
    lock: (handle, work) => lockAfterRead(coordination.lock, resolver.keyOf(handle), work),
    unclaimed: coordination.unclaimed,
    mayDelete: (handle) => allowsDeletion(rules, 'handle', handle),
    ...(reverse && { reverseLookup: reverse.lookup }),
    onStale: (reason) => {
      metrics.staleAnswered(reason);
    },
    onUnexpected: reportUnexpected(parts),
    now,
  });
}

const settingsOf = ({ v2, http }: Config): V2Settings => ({
  ...v2,
  prefixes: v2.prefixes ?? [],
  identities: new Map(v2.identities ?? []),
  maxBodyBytes: http.maxBodySize,
  clientMaxAgeMs: http.clientMaxAge,
});
