// The handle that a request names, for judges.
import { expect, it } from 'vitest';
import type { RequestJudge } from '../../src/hooks.js';
import { handleNamedBy } from '../../src/http/context.js';
import type { Plugin } from '../../src/plugin.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream } from '../support/upstream.js';

useNock();

it.each([
  [PATH, HANDLE],
  [`/${HANDLE}`, HANDLE],
  [`/${HANDLE}#part`, HANDLE],
  ['/', undefined],
  ['/?hdl=', undefined],
  ['/%20', undefined],
  ['/robots.txt', undefined],
  ['/favicon.ico', undefined],
  ['/api/unknown', undefined],
  ['/api/handles?prefix=21.T11998', '21.T11998/'],
  ['/api/v2/handles/', undefined],
  ['/api/v2/handles/21.T11998', '21.T11998/'],
  ['/api/v2/handles/21.T11998/', '21.T11998/'],
  ['/api/v2/handles/21.T11998/a', '21.T11998/a'],
  ['/api/v2/handles/21.T11998/a/', '21.T11998/a'],
  ['/api/v2/handles/21.T11998//', '21.T11998//'],
  ['/api/v2/handles/21.T11998%2Fa', '21.T11998/a'],
])('a request for %s names the handle %s', async (path, handle) => {
  mockUpstream();
  const named: unknown[] = [];
  const judge: RequestJudge['judge'] = ({ place }) => {
    named.push(handleNamedBy(place).handle);
    return {};
  };
  const start = () => ({ admission: () => ({ judgesHits: true, judge }) });
  const plugin: Plugin = { name: 'judge', isEnabled: () => true, load: () => Promise.resolve({ start }) };
  const { ask } = await startProxy({}, { plugins: [plugin] });
  await ask(path);
  expect(named).toEqual([handle]);
});
