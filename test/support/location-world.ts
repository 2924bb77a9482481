// Starts a demo server with the records of the HDLProxy recordings, and a proxy in front.
import { readFileSync } from 'node:fs';
import { onTestFinished, vi } from 'vitest';
import { DEMO_PREFIXES } from '../../src/dev-server/seed.js';
import { type ControlledServer, createControlledServer } from './demo-control.js';
import type { Asked, Question } from './ask.js';
import { writeCountryDatabase } from './country-database.js';
import { type Proxy, startProxy } from './proxy.js';
import type { Recording } from './recordings.js';

const fixture = new URL('../fixtures/hdl-proxy-loc.json', import.meta.url);
export const locationRecordings = JSON.parse(readFileSync(fixture, 'utf8')) as Recording[];

const ENV = {
  HTTP_TRUSTED_PROXIES: 'loopback',
  REDIRECT_ALLOWED_HEADERS: 'link,x-one,x-two,x-a,x-b,x-sub,x-ns,x-inc,x-own',
};
/** Matches headers that records set. */
export const OF_RECORDS = /^(?:link|x-(?:one|two|a|b|sub|ns|inc|own)): /;

/** Countries in the recorded lookup. */
const COUNTRIES = { '192.0.2.0/24': 'DE', '198.51.100.0/24': 'US' };

export const isSetup = ({ name }: Recording): boolean => name.startsWith('setup');

/** Whether the recording covers a Handle server API endpoint. */
export const isOfApi = ({ name }: Recording): boolean => /^path: server: .*\/api/.test(name);

/** Starts the server and the proxy without records (see `putRecorded`); closes them when the test ends. */
export async function startLocationWorld(): Promise<{ demo: ControlledServer; proxy: Proxy }> {
  const demo = createControlledServer({
    prefixes: [...DEMO_PREFIXES, ...'ABCDEFGHIJKLM'.replace(/./g, ' 21.T7NS$&').trim().split(' ')],
  });
  onTestFinished(() => demo.close());
  const { url: upstreamUrl } = await demo.listen(0);
  const proxy = await startProxy({
    UPSTREAM_URL: upstreamUrl,
    REDIRECT_COUNTRY_DATABASE: writeCountryDatabase(COUNTRIES),
    ...ENV,
  });
  return { demo, proxy };
}

/** Writes a record directly to the Handle server, because the recorded writes bypassed HDLProxy too. */
export function putRecorded(demo: ControlledServer, { request }: Recording): void {
  if (request.method !== 'PUT') return;
  const body = JSON.parse(request.body ?? '') as unknown[] | { values: unknown[] };
  const handle = decodeURIComponent(request.path.slice('/api/handles/'.length));
  demo.put(handle, Array.isArray(body) ? body : body.values);
}

export type DrawnQuestion = Question & {
  /** Random number for the draw, by default 0.5. */
  random?: number;
};

/**
 * Starts a world with all recorded records except the HS_NAMESPACE of 21.T11998. Returns a function that
 * sends requests to the proxy; paths that start with `rec` are suffixes under 21.T11998.
 */
export async function startRecordedLocations(): Promise<
  (path: string, question?: DrawnQuestion) => Promise<Asked>
> {
  let drawn = 0.5;
  vi.spyOn(Math, 'random').mockImplementation(() => drawn);
  const { demo, proxy } = await startLocationWorld();
  const ofNamespace = '/0.NA/21.T11998';
  for (const recording of locationRecordings.filter(isSetup)) {
    if (!recording.request.path.endsWith(ofNamespace)) putRecorded(demo, recording);
  }
  return (path, { random = 0.5, ...question } = {}) => {
    drawn = random;
    return proxy.ask(path.startsWith('rec') ? `/21.T11998/${path}` : path, question);
  };
}
