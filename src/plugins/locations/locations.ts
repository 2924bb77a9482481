// Redirects by locations: reads the prefix and the lists of a request, and finds its target.
import type { Host, Started } from '../../app/plugin.js';
import { ServiceError } from '../../errors.js';
import { prefixRecordOf } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { contextOf, unjudgedCaller } from '../../http/context.js';
import type {
  Finding,
  RedirectExtension,
  RedirectRequest,
  StartedRequest,
} from '../../redirect/extension.js';
import { hasPrefix } from '../../redirect/call.js';
import { createRedirectValues } from '../../redirect/values.js';
import type { FromEntry } from '../../resolver/loader.js';
import { type CountryOf, openCountries } from './addresses.js';
import { candidatesOf } from './candidates.js';
import {
  type GatheredLists,
  type ListReaderDeps,
  type PrefixOfHandle,
  RequestListReader,
  gatherLists,
} from './gather.js';
import { createLocationListParser, listsIn, mayRedirect } from './location-list.js';
import { type Namespace, createOtherRecords, createPrefixRecords } from './other-records.js';
import { ERRORS, type LocationsConfig } from './plugin.js';
import { findTarget } from './target.js';
import { writeLocations } from './template.js';

const TYPES = ['10320/LOC', '10320/LINKS', '10320/HEADERS'];

interface LocationsDeps extends ListReaderDeps, Pick<Host, 'findClient'> {
  allowedHeaders: readonly string[];
  /** Undefined without `redirect.countryDatabase`. */
  countryOf: CountryOf | undefined;
}

export const start = (host: Host): Started => ({
  redirect: (settings) => createLocations(settings as LocationsConfig, host),
});

function createLocations(config: LocationsConfig, host: Host): RedirectExtension {
  const { allowedHeaders, countryDatabase, prefixLocations } = config.redirect;
  const { resolver, cache, findClient } = host;
  const otherRecords = createOtherRecords(config, host, { resolver, ...cache });
  const prefixRecords = prefixLocations ? createPrefixRecords(otherRecords) : undefined;
  const deps: LocationsDeps = {
    refOf: resolver.refOf,
    parseList: createLocationListParser(),
    values: createRedirectValues(TYPES),
    otherRecords,
    prefixRecords,
    findClient,
    allowedHeaders,
    countryOf: countryDatabase === undefined ? undefined : openCountries(countryDatabase),
  };
  return {
    types: TYPES,
    pattern: /10320\/|HS_ALIAS/i,
    dependencyOf: prefixRecords?.plainPrefixOf,
    startRequest: (request) => startRequest(request, deps),
  };
}

/** Reads the record of the prefix. */
async function startRequest(request: RedirectRequest, deps: LocationsDeps): Promise<StartedRequest> {
  const { handle, res } = request;
  const prefixHandle = prefixRecordOf(handle);
  const prefix = hasPrefix(handle.text)
    ? await deps.prefixRecords?.read(prefixHandle, unjudgedCaller(res))
    : undefined;
  return {
    failure: prefix && inactiveError(handle.text, prefix.namespace),
    contact: prefix?.namespace.contact,
    record: prefix?.record,
    find: async (values, resolution) =>
      mayRedirect(values)
        ? findLocation(
            request,
            { values, resolution, prefix: { handle: prefixHandle, record: prefix } },
            deps,
          )
        : undefined,
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
  deps: LocationsDeps,
): Promise<Finding> {
  const { res, handle, query, run } = request;
  const { caller } = contextOf(res);
  // A limited network still gets redirects for cached records, which may require reading prefix records.
  const unjudged = unjudgedCaller(res);
  const { authoritative } = query;
  const reader = new RequestListReader(deps, { authoritative, prefix, caller, unjudged, run });
  const ownChars = resolution.entry.values.length;
  const own = await run(listsIn(values, deps.parseList), ownChars);
  const gathered = await gatherLists(own, { handle, reader });
  const chars = ownChars + reader.chars;
  const shown = { gathered, values, chars };
  return {
    result: await (query.show === 'locations'
      ? showLocations(request, shown)
      : chooseTarget(request, shown, deps)),
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

async function showLocations({ handle, run }: RedirectRequest, { gathered, values }: ReadLists) {
  const { locations } = candidatesOf(gathered, values);
  // Templates can expand a small record into a large text.
  const text = await run(writeLocations(locations, handle.text), Infinity);
  return { contentType: 'text/xml;charset=utf-8', text };
}

async function chooseTarget(
  { req, handle, query, run }: RedirectRequest,
  { gathered, values, chars }: ReadLists,
  deps: LocationsDeps,
) {
  const { accept, 'accept-language': acceptLanguage, 'user-agent': userAgent } = req.headers;
  const facts = {
    headers: { accept, acceptLanguage, userAgent },
    address: deps.findClient(req).address,
    countryOf: deps.countryOf,
    random: Math.random(),
  };
  return run(findTarget({ handle: handle.text, values, query, ...facts }, gathered, deps), chars);
}
