// Redirects by locations: reads the prefix and the lists of a request, and finds its target.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { readRegularText } from '../../config/given-files.js';
import { ServiceError } from '../../errors.js';
import { hasPrefix, prefixRecordOf } from '../../handle/handle.js';
import type {
  Finding,
  RedirectExtension,
  RedirectRequest,
  StartedRequest,
} from '../../redirect/extension.js';
import { createRedirectValues, hasUrl, textsOf } from '../../redirect/values.js';
import { runToEnd } from '../../time-slicer.js';
import { openCountries } from './countries.js';
import { type ListSources, type ReadingRequest, ListReader, gatherLists } from './gather.js';
import {
  type HandleLists,
  TYPES,
  createLocationListParser,
  listsIn,
  parseLocationList,
} from './location-list.js';
import { type Namespace, createOtherRecords, createPrefixRecords, toPrefixHandle } from './other-records.js';
import { ERRORS, type LocationsConfig, readLocationsFile } from './plugin.js';
import { findTarget, writeCandidates } from './target.js';

export const start = (host: Host): Started => ({
  redirect: (settings) => createLocations(settings as LocationsConfig, host),
});

function createLocations(config: LocationsConfig, host: Host): RedirectExtension {
  const otherRecords = createOtherRecords(config, host);
  const { allowedHeaders, countryDatabase, locationsFile } = config.redirect;
  const prefixRecords = createPrefixRecords(otherRecords, listsOfFile(locationsFile));
  const sources: ListSources = {
    refOf: host.refOf,
    parseList: createLocationListParser(),
    values: createRedirectValues(TYPES),
    otherRecords,
    prefixRecords,
  };
  const countryOf = countryDatabase === undefined ? undefined : openCountries(countryDatabase);
  return {
    types: TYPES,
    pattern: /10320\/|HS_ALIAS/i,
    dependencyOf: prefixRecords.plainPrefixOf,
    startRequest: (request) => startRequest(request, sources, { allowedHeaders, countryOf }),
  };
}

/** Returns the lists of a file that was checked when the configuration was read, by the key of the prefix record. */
function listsOfFile(path: string | undefined): ReadonlyMap<string, HandleLists> {
  const texts = path === undefined ? [] : readLocationsFile(readRegularText(path));
  if (typeof texts === 'string') throw new TypeError(`${path}: ${texts}`);
  return new Map(
    [...texts].map(([prefix, text]) => [
      toPrefixHandle(prefix).key,
      runToEnd(listsIn([[text]], parseLocationList)),
    ]),
  );
}

/** Reads the record of the prefix, for a limited network too: it still gets redirects for cached records. */
async function startRequest(
  request: RedirectRequest,
  sources: ListSources,
  settings: TargetSettings,
): Promise<StartedRequest> {
  const { handle, values, context } = request;
  const { caller } = context;
  const unjudged = caller && { ...caller, network: undefined };
  const prefixHandle = prefixRecordOf(handle);
  const record = hasPrefix(handle.text)
    ? await sources.prefixRecords.read(prefixHandle, unjudged)
    : undefined;
  return {
    failure: record && inactiveError(handle.text, record.namespace),
    contact: record?.namespace.contact,
    record: record?.record,
    async find() {
      const texts = textsOf(values, TYPES);
      // Links and headers redirect nothing (recording "links: 10320/links alone").
      if (texts[0]?.length === 0 && !hasUrl(values)) return undefined;
      const prefix = { handle: prefixHandle, record };
      return findLocation({ ...request, prefix, unjudged, texts }, sources, settings);
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

interface TargetSettings {
  /** Lower-case names of the headers that 10320/headers may set. */
  allowedHeaders: readonly string[];
  countryOf: ((address: string) => string | undefined) | undefined;
}

async function findLocation(
  request: ReadingRequest & { texts: readonly string[][] },
  sources: ListSources,
  { allowedHeaders, countryOf }: TargetSettings,
): Promise<Finding> {
  const { req, context, handle, query, values, resolution, texts } = request;
  const reader = new ListReader(sources, request);
  const chars = resolution.entry.values.length;
  const own = await context.runSteps(listsIn(texts, sources.parseList), chars);
  const gathered = await gatherLists(own, reader);
  const { used, readsOthers, isComplete } = reader;
  const finding = { used, isOfRecordAlone: !readsOthers, isComplete };
  const record = { handle: handle.text, values };
  if (query.show === 'locations') {
    // Templates can expand a small record into a large text.
    const text = await context.runSteps(writeCandidates(gathered, record), Infinity);
    // Without locations, the page is shown.
    if (text !== undefined) return { ...finding, result: { contentType: 'text/xml;charset=utf-8', text } };
  }
  const { accept, 'accept-language': acceptLanguage, 'user-agent': userAgent } = req.headers;
  const headers = { accept, acceptLanguage, userAgent };
  const { address } = context.client;
  const facts = { ...record, query, headers, address, countryOf, random: Math.random() };
  const result = await context.runSteps(findTarget(facts, gathered, allowedHeaders), chars + reader.chars);
  return { ...finding, result };
}
