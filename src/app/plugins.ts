// The plugins, in the order in which their hooks run. Referrals are first, because others find their servers at
// start; the snapshot precedes those that wait for its records.
import { admin } from '../plugins/admin/plugin.js';
import { audit } from '../plugins/audit/plugin.js';
import { batch } from '../plugins/batch/plugin.js';
import { changes } from '../plugins/changes/plugin.js';
import { locations } from '../plugins/locations/plugin.js';
import { fronts } from '../plugins/fronts/plugin.js';
import { native } from '../plugins/native/plugin.js';
import { moved } from '../plugins/moved/plugin.js';
import { mirror } from '../plugins/mirror/plugin.js';
import { openApi } from '../plugins/openapi/plugin.js';
import { pages } from '../plugins/pages/plugin.js';
import { prefixPage } from '../plugins/prefix-page/plugin.js';
import { proxyProtocol } from '../plugins/proxy-protocol/plugin.js';
import { reverseLookup } from '../plugins/reverse-lookup/plugin.js';
import { referrals } from '../plugins/referrals/plugin.js';
import { repositories } from '../plugins/repositories/plugin.js';
import { reports } from '../plugins/reports/plugin.js';
import { signposting } from '../plugins/signposting/plugin.js';
import { snapshot } from '../plugins/snapshot/plugin.js';
import { tombstones } from '../plugins/tombstones/plugin.js';
import { tracing } from '../plugins/tracing/plugin.js';
import { traffic } from '../plugins/traffic/plugin.js';
import { CATALOGUE, type ErrorEntry } from '../errors.js';
import { METRICS, type MetricEntry } from '../observe/metric-list.js';
import type { Plugin, SettingsOf } from '../plugin.js';
import { metricsOf } from './load-plugins.js';

const LISTED = [
  referrals,
  snapshot,
  traffic,
  audit,
  mirror,
  changes,
  reports,
  prefixPage,
  repositories,
  moved,
  fronts,
  tracing,
  pages,
  locations,
  tombstones,
  signposting,
  batch,
  reverseLookup,
  native,
  proxyProtocol,
  openApi,
  admin,
] as const satisfies readonly Plugin[];

export const PLUGINS: readonly Plugin[] = LISTED;

export type PluginSettings = SettingsOf<(typeof LISTED)[number]>;

export const allErrors = (): ErrorEntry[] =>
  [CATALOGUE, ...PLUGINS.map(({ errors = {} }) => errors)].flatMap((errors) => Object.values(errors));

export const allMetrics = (): MetricEntry[] => [...Object.values(METRICS), ...metricsOf(PLUGINS)];
