// Finds prefix records through the cache, and reads handles from the servers that they name.
import type { Host, Started } from '../../app/plugin.js';
import { toText } from '../../handle/bytes.js';
import type { HandleRef } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import type { Resolution } from '../../resolver/loader.js';
import type { OriginServer } from '../../upstream/contract.js';
import { PUBLIC_TRUST } from '../../upstream/failure.js';
import { createOriginServer } from '../../upstream/upstreams.js';
import { type Referral, createReferrals, referralIn } from './follow.js';
import type { ReferralsConfig } from './plugin.js';
import { createReferredServers, settingsAt } from './referred-servers.js';

export function start(host: Host, { upstream }: ReferralsConfig): Started {
  const { resolver, refOf } = host;
  const configured = host.upstreams.servers.find(({ prefixes }) => prefixes.includes('0.NA'));
  const root = configured ?? createRoot(upstream, host);
  const servers = createReferredServers(upstream, host);
  const findReferral = async (handle: string): Promise<Referral | undefined> =>
    referralOf(await resolver.resolve(refOf(handle), { authoritative: false }));
  const readReferred = createReferrals(upstream, findReferral, servers.serverAt);
  return {
    root,
    fallback: (read) => (isReferable(read.handle) ? readReferred(read) : undefined),
    async close() {
      await Promise.all([root !== configured && root.close(), servers.close()]);
    },
  };
}

/** Whether a referral can exist. The root holds handles under `0.` and handles without a slash. */
const isReferable = ({ text }: HandleRef): boolean => text.indexOf('/') > 0 && !text.startsWith('0.');

/** Returns the referral in a prefix record or a refusal; undefined if the handle does not exist. */
function referralOf(resolution: Resolution): Referral | undefined {
  if (resolution.kind === 'refused') return referralIn({ ...resolution.refused, kind: 'refused' });
  const { entry } = resolution;
  if (entry.kind === 'not-found') return undefined;
  return { values: entry.kind === 'found' ? (JSON.parse(toText(entry.values)) as HandleValue[]) : [] };
}

const ROOT_KEYS = { ...PUBLIC_TRUST, url: 'upstream.referralRoot' };

function createRoot(upstream: ReferralsConfig['upstream'], host: Host): OriginServer {
  const settings = settingsAt(upstream.referralRoot, upstream);
  return createOriginServer(settings, host, host, host.upstreams.main?.url, () => ROOT_KEYS);
}
