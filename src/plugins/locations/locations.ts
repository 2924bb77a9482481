// Redirects by locations: reads the prefix and the lists of a request, and finds its target.
import { readFileSync } from 'node:fs';
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import { prefixRecordOf } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { contextOf, unjudgedCaller } from '../../http/context.js';
import type {
  Finding,
  FoundTarget,
  RedirectExtension,
  RedirectRequest,
  StartedRequest,
} from '../../redirect/extension.js';
import { hasPrefix } from '../../redirect/call.js';
import { createRedirectValues } from '../../redirect/values.js';
import type { FromEntry } from '../../resolver/loader.js';
import { runToEnd } from '../../time-slicer.js';
import { openCountries } from './addresses.js';
import { candidatesOf } from './select.js';
import {
  type GatheredLists,
  type ListSources,
  type PrefixOfHandle,
  RequestListReader,
  gatherLists,
} from './gather.js';
import {
  type HandleLists,
  createLocationListParser,
  listsIn,
  mayRedirect,
  parseLocationList,
} from './location-list.js';
import { type Namespace, createOtherRecords, createPrefixRecords, toPrefixHandle } from './other-records.js';
import { ERRORS, type LocationsConfig, readLocationsFile } from './plugin.js';
import { findTarget, writeLocations } from './target.js';

const TYPES = ['10320/LOC', '10320/LINKS', '10320/HEADERS'];

export const start = (host: Host): Started => ({
  redirect: (settings) => createLocations(settings as LocationsConfig, host),
});

function createLocations(config: LocationsConfig, host: Host): RedirectExtension {
  const otherRecords = createOtherRecords(config, host);
  const { prefixLocations, locationsFile } = config.redirect;
  const prefixRecords = prefixLocations
    ? createPrefixRecords(otherRecords, listsOfFile(locationsFile))
    : undefined;
  const sources: ListSources = {
    refOf: host.refOf,
    parseList: createLocationListParser(),
    values: createRedirectValues(TYPES),
    otherRecords,
    prefixRecords,
  };
  const chooseTarget = createChooseTarget(config);
  return {
    types: TYPES,
    pattern: /10320\/|HS_ALIAS/i,
    dependencyOf: prefixRecords?.plainPrefixOf,
    startRequest: (request) => startRequest(request, sources, chooseTarget),
  };
}

/** Returns the lists of a file that was checked when the configuration was read, by the key of the prefix record. */
function listsOfFile(path: string | undefined): ReadonlyMap<string, HandleLists> {
  const texts = path === undefined ? [] : readLocationsFile(readFileSync(path, 'utf8'));
  if (typeof texts === 'string') throw new TypeError(`${path}: ${texts}`);
  return new Map(
    [...texts].map(([prefix, value]) => {
      const data = { format: 'string', value };
      const lists = runToEnd(listsIn([{ index: 1, type: '10320/LOC', data }], parseLocationList));
      return [toPrefixHandle(prefix).key, lists];
    }),
  );
}

/** Reads the record of the prefix. */
async function startRequest(
  request: RedirectRequest,
  sources: ListSources,
  chooseTarget: ChooseTarget,
): Promise<StartedRequest> {
  const { handle, values, res } = request;
  const prefixHandle = prefixRecordOf(handle);
  const prefix = hasPrefix(handle.text)
    ? await sources.prefixRecords?.read(prefixHandle, unjudgedCaller(res))
    : undefined;
  return {
    failure: prefix && inactiveError(handle.text, prefix.namespace),
    contact: prefix?.namespace.contact,
    record: prefix?.record,
    async find(resolution) {
      if (!mayRedirect(values)) return undefined;
      const listed = { values, resolution, prefix: { handle: prefixHandle, record: prefix } };
      return findLocation(request, listed, sources, chooseTarget);
    },
  };
}

/** JSON responses ignore inactivity (recordings "prefix: inactive, …"). */
function inactiveError(handle: string, { isInactive, statusMessage }: Namespace): ServiceError | undefined {
  if (!isInactive) return undefined;
  const [prefix = ''] = handle.split('/', 1);
  return new ServiceError(ERRORS.REDIRECT_INACTIVE, {
    detail: statusMessage === '' ? prefix : `${prefix}: ${statusMessage}`,
  });
}

interface ListedRecord {
  values: readonly HandleValue[];
  resolution: FromEntry;
  prefix: PrefixOfHandle;
}

async function findLocation(
  request: RedirectRequest,
  { values, resolution, prefix }: ListedRecord,
  sources: ListSources,
  chooseTarget: ChooseTarget,
): Promise<Finding> {
  const { res, handle, query, run } = request;
  const { caller } = contextOf(res);
  // A limited network still gets redirects for cached records, which may require reading prefix records.
  const unjudged = unjudgedCaller(res);
  const { authoritative } = query;
  const reader = new RequestListReader(sources, { authoritative, prefix, caller, unjudged, run });
  const ownChars = resolution.entry.values.length;
  const own = await run(listsIn(values, sources.parseList), ownChars);
  const gathered = await gatherLists(own, { handle, reader });
  const chars = ownChars + reader.chars;
  const shown = { gathered, values, chars };
  return {
    result:
      (query.show === 'locations' ? await showLocations(request, shown) : undefined) ??
      (await chooseTarget(request, shown)),
    used: reader.used,
    isOfRecordAlone: !reader.readsOthers,
    isComplete: reader.isComplete,
  };
}

interface ReadLists {
  gathered: GatheredLists;
  values: readonly HandleValue[];
  /** Total characters of all records involved. */
  chars: number;
}

/** Returns undefined for a record without locations, whose page is shown instead. */
async function showLocations({ handle, run }: RedirectRequest, { gathered, values }: ReadLists) {
  const { locations } = candidatesOf(gathered, values);
  if (locations.length === 0) return undefined;
  // Templates can expand a small record into a large text.
  const text = await run(writeLocations(locations, handle.text), Infinity);
  return { contentType: 'text/xml;charset=utf-8', text };
}

type ChooseTarget = (request: RedirectRequest, lists: ReadLists) => Promise<FoundTarget>;

function createChooseTarget({ redirect }: LocationsConfig): ChooseTarget {
  const { allowedHeaders, countryDatabase } = redirect;
  const countryOf = countryDatabase === undefined ? undefined : openCountries(countryDatabase);
  return async function chooseTarget({ req, res, handle, query, run }, { gathered, values, chars }) {
    const { accept, 'accept-language': acceptLanguage, 'user-agent': userAgent } = req.headers;
    const facts = {
      headers: { accept, acceptLanguage, userAgent },
      address: contextOf(res).client.address,
      countryOf,
      random: Math.random(),
    };
    const request = { handle: handle.text, values, query, ...facts };
    return run(findTarget(request, gathered, allowedHeaders), chars);
  };
}
