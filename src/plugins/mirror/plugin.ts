// A mirror of prefixes: all their handles are in the cache, and survive an outage of any length.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, duration, flag, list, readPrefixName, secret, text } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import type { MetricEntry } from '../../observe/metric-list.js';

export const METRICS = {
  handles: {
    name: 'handle_proxy_mirror_handles',
    type: 'gauge',
    labelNames: ['prefix', 'state'],
    help: 'Handles of a mirrored prefix by state (listed; since the last list checked: read if the record was too old; absent: without an entry in memory when they were checked, as all are in the first copy, later a sign that `cache.maxBytes` is too small; failed: not read in three attempts).',
  },
  age: {
    name: 'handle_proxy_mirror_age_seconds',
    type: 'gauge',
    labelNames: ['prefix', 'part'],
    help: 'Age of a mirrored prefix by part (list: time since the last list; records: time since the last whole list of which every handle has been checked and none has failed), `+Inf` before the first.',
  },
} as const satisfies Record<string, MetricEntry>;

const SECTIONS = {
  mirror: {
    prefixes: list({ allowed: 'prefixes such as 21.T1', read: readPrefixName })
      .default([])
      .describe(
        'Prefixes whose handles are all read into the cache and served stale without end while the Handle server is away, separated by commas; of each at most `cache.found.maxEntries` handles. Without any, there is no mirror.',
      ),
    interval: duration({ min: '1s', max: '30d', byDefault: '1h' }).describe(
      'Maximum age of the records of `mirror.prefixes`: handles are listed, and records read, after half of it.',
    ),
    user: text({ allowed: 'an identity such as 300:21.T1/ADMIN', pattern: /^[\x21-\x7e]+$/ })
      .optional()
      .describe(
        'Identity with the right to list the handles of `mirror.prefixes`, such as `300:21.T1/ADMIN`; it is sent to the server of each of them, over https or to loopback, and to no other.',
      ),
    password: secret(
      text({ allowed: 'the password of mirror.user', pattern: /^.+$/s })
        .optional()
        .describe('Password of `mirror.user`.'),
    ),
    publicLists: flag(false).describe(
      'Whether lists (`GET /api/handles?prefix=`) without a login are served from the mirror although it has a login: anyone can then list the handles of `mirror.prefixes`.',
    ),
  },
};

export type MirrorConfig = Config & SectionsOf<typeof SECTIONS>;

export const mirror: Plugin<MirrorConfig> = {
  name: 'mirror',
  sections: SECTIONS,
  rules: ({ mirror: { user, password } }) => [
    [
      (user === undefined) !== (password === undefined),
      user === undefined ? 'mirror.password' : 'mirror.user',
      `give mirror.${user === undefined ? 'user' : 'password'} too`,
    ],
  ],
  metrics: METRICS,
  statistics: { mirrors: [] },
  isEnabled: ({ mirror: { prefixes } }) => prefixes.length > 0,
  load: () => import('./mirror.js'),
};
