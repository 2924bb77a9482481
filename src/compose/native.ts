// Creates the native protocol: the answer to a message, and the site record of this instance.
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config } from '../config/schema.js';
import type { SiteInterface } from '../config/schema-native.js';
import type { PreparedDeps } from '../cache/prepared-cache.js';
import { type NativeAnswer, createAnswer } from '../native/answer.js';
import { PreparedMessages } from '../native/prepared-messages.js';
import { createResolve } from '../native/resolve.js';
import { type SiteInfo, NO_SITE, siteOfHandle, siteOfRecord } from '../native/site-info.js';
import { siteRecord } from '../native/site-record.js';
import type { Hits } from '../observe/hits.js';
import type { Resolver } from '../resolver/resolver.js';
import type { SiteJson } from '../handle/site-data.js';
import { makeReportHit } from './native-reports.js';
import type { LimitMiss } from '../upstream/caller.js';
import { type SharedDeps, reportUnexpected } from './shared-deps.js';
import type { Upstreams } from '../upstream/upstreams.js';

interface NativeBackends {
  preparing: PreparedDeps;
  hits: Hits;
  resolver: Resolver<unknown>;
  upstreams: Pick<Upstreams, 'records'>;
  limitMiss: LimitMiss;
}

export function makeNative(shared: SharedDeps, backends: NativeBackends): NativeAnswer {
  const { config, metrics, now } = shared;
  const { resolver, upstreams, preparing, hits, limitMiss } = backends;
  const site = makeSite(config, resolver);
  return createAnswer({
    resolve: createResolve({
      fromMemory: (handle) => resolver.fromMemory(handle),
      // Where no referral is followed, all loads of a handle are the same.
      resolve: (handle, { isUnreferred = false, ...options }) =>
        resolver.resolve(handle, {
          ...options,
          isUnreferred: isUnreferred && config.upstream.followReferrals,
        }),
      readAll: (handle, { authoritative, caller, indexes, types }) => {
        const selection = { indexes, types };
        return upstreams.records.get(handle, { publicOnly: false, authoritative, caller, selection });
      },
      limitMiss,
      onStale: metrics.countStale,
    }),
    prepared: new PreparedMessages({
      ...preparing,
      site,
      now,
      startTimer: hits.startTimer,
      onHit: makeReportHit(shared, hits),
    }),
    site,
    now,
    onUnexpected: reportUnexpected(shared),
  });
}

function makeSite(config: Config, resolver: Resolver<unknown>): SiteInfo {
  const { address, domain, handle } = config.native.site;
  if (address !== undefined || domain !== undefined) return siteOfRecord(ownSiteRecord(config));
  if (handle === undefined) return NO_SITE;
  return siteOfHandle({ handle, resolve: (name, options) => resolver.resolve(name, options) });
}

/** @throws when the certificate cannot be read */
export function ownSiteRecord(config: Config): SiteJson {
  const { site } = config.native;
  const { certificateFile, interfaces } = site;
  const publicKey =
    certificateFile === undefined
      ? undefined
      : new X509Certificate(readFileSync(certificateFile)).publicKey.export({ format: 'jwk' });
  return siteRecord({
    ...site,
    publicKey,
    interfaces: interfaces.length > 0 ? interfaces : openInterfaces(config),
  });
}

/** The interfaces that are on. Port 0 is another one at each start. */
function openInterfaces({ native, server }: Config): SiteInterface[] {
  const { tcp, udp, tunnel } = native;
  const interfaces: SiteInterface[] = [
    { protocol: 'UDP', port: udp.port ?? 0 },
    { protocol: 'TCP', port: tcp.port ?? 0 },
    { protocol: 'HTTP', port: tunnel ? server.port : 0 },
  ];
  return interfaces.filter(({ port }) => port > 0);
}
