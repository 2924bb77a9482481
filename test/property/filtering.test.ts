// Cached responses are identical to server responses for the same query.
import { fc } from '../support/property.js';
import { describe, expect, test } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { records, selections } from '../support/arbitraries.js';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { rounds } from '../support/property-rounds.js';

const demo = await startDemoServer();

/** Generates records with cacheable TTLs. */
const keptRecords = records.map((values) =>
  values.map((value): HandleValue => {
    const { ttl } = value;
    return { ...value, ttl: typeof ttl === 'number' ? 60 + Math.abs(ttl) : '2030-01-02T03:04:05Z' };
  }),
);

const queries = fc
  .tuple(selections, fc.shuffledSubarray(['pretty', 'callback=show', 'other=1']))
  .chain(([{ indexes, types }, others]) => {
    const asked = [
      ...indexes.map((index) => `index=${index}`),
      ...types.map((type) => `type=${encodeURIComponent(type)}`),
      ...others,
    ];
    return fc.shuffledSubarray(asked, { minLength: asked.length });
  })
  .map((parameters) => parameters.join('&'));

describe('cached selection', () => {
  test('returns the bytes of the server for every query', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    let runs = 0;
    const holds = fc.asyncProperty(
      keptRecords,
      fc.array(queries, { minLength: 1, maxLength: 5 }),
      async (record, questions) => {
        const handle = `21.T11998/property-${++runs}`;
        demo.put(handle, record);
        await proxy.ask(`/api/handles/${handle}`);
        for (const query of questions) {
          const target = `/api/handles/${handle}?${query}`;
          const own = await ask(demo.url, target);
          demo.reset();
          const ours = await proxy.ask(target);
          expect(demo.asked, 'questions to the upstream').toBe(0);
          expect([ours.status, ours.text], query).toEqual([own.status, own.text]);
          expect(ours.headers['content-type']).toBe(own.headers['content-type']);
        }
      },
    );
    await fc.assert(holds, { numRuns: rounds(100) });
  });
});
