// Reads handles of prefixes that no configured server serves from the servers in their prefix records.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, fixed, flag } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';

const SECTIONS = {
  upstream: {
    followReferrals: flag(false).describe(
      'Whether to read handles under prefixes that no configured server serves from the server that the prefix record names, without credentials: a public address, and port 80, 443, 8000 or 2641. Prefix records are those of `https://hdl.handle.net`, unless a server of `upstreams` has the prefix `0.NA`.',
    ),
    // The root of the Handle System has every prefix record. A server of `upstreams` with the prefix `0.NA` replaces it.
    referralRoot: fixed('https://hdl.handle.net'),
    // Anyone who administers a prefix chooses where its record leads: never into the operator's network, and only to
    // ports of web and Handle servers. `upstreams` names any other server.
    referralsToPrivateNetworks: fixed(false),
    referralPorts: fixed<readonly number[]>([80, 443, 8000, 2641]),
  },
};

export type ReferralsConfig = Config & SectionsOf<typeof SECTIONS>;

/** Maximum servers that records name. The least recently used server is evicted first. */
export const MAX_SERVERS = 256;
export const CONNECTIONS = 16;

export const referrals: Plugin<ReferralsConfig> = {
  name: 'referrals',
  sections: SECTIONS,
  isEnabled: ({ upstream: { followReferrals } }) => followReferrals,
  // The root server, and the servers that records name.
  connections: ({ upstream: { followReferrals, connections } }) =>
    followReferrals ? connections + MAX_SERVERS * CONNECTIONS : 0,
  load: () => import('./referrals.js'),
};
