// Reads handles of prefixes that no configured server serves from the servers in their prefix records.
import type { Plugin } from '../../plugin.js';
import { readOrigin } from '../../config/addresses.js';
import { flag, list, normalised } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { ORIGIN } from '../../config/schema-upstream.js';
import type { SectionsOf } from '../../config/sections.js';

/** Ports from `first` to `last`, inclusive. */
type PortRange = readonly [first: number, last: number];

function readPorts(text: string): PortRange | undefined {
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const range: PortRange = [Number(first), Number(last)];
  return first !== '' && range[0] <= range[1] && range[1] < 65_536 ? range : undefined;
}

const SECTIONS = {
  upstream: {
    followReferrals: flag(false).describe(
      'Whether to read handles under prefixes that no configured server serves from the server that the prefix record names, without credentials.',
    ),
    referralRoot: normalised({ allowed: ORIGIN, read: readOrigin })
      .prefault('https://hdl.handle.net')
      .describe(
        'Server from which prefix records (`0.NA/…`) are read for `upstream.followReferrals`, unless a server of `upstreams` has the prefix `0.NA`.',
      ),
    referralsToPrivateNetworks: flag(false).describe(
      'Whether `upstream.followReferrals` may lead to loopback, private and other addresses that are not public.',
    ),
    referralPorts: list({ allowed: 'ports such as 443, or ranges such as 8000-8999', read: readPorts })
      .prefault('80,443,8000,2641')
      .describe('Ports to which `upstream.followReferrals` may lead, separated by commas.'),
  },
};

export type ReferralsConfig = Config & SectionsOf<typeof SECTIONS>;

/** Maximum servers that records name. The least recently used server is evicted first. */
export const MAX_SERVERS = 256;
/** Maximum connections to each of them. */
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
