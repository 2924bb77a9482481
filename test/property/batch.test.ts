// A batch returns the responses of single GETs for random lists, records, failures and selections.
import fc from 'fast-check';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { handleRef, handleToPath } from '../../src/handle/handle.js';
import { selections, texts, records } from '../support/arbitraries.js';
import { batchTarget, elementsOf, handleOfTarget, postBatch } from '../support/batch.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type Answer, mockUpstream, notFound } from '../support/upstream.js';
import { rounds } from '../support/property-rounds.js';

useNock();

const refused = (responseCode: number, status: number): Answer => ({
  status,
  body: { responseCode, message: 'no' },
});

/** Generates the Handle server response for each handle. */
const answers: fc.Arbitrary<(handle: string) => Answer> = fc.oneof(
  { weight: 4, arbitrary: records.map((values) => (handle: string) => recordFor(handle, values)) },
  fc.constant((handle: string) => notFound(handle)),
  fc.constantFrom(
    () => refused(301, 400),
    () => refused(2, 500),
    () => ({ status: 200, body: 'no JSON' }),
  ),
);

const recordFor = (handle: string, values: unknown[]): Answer =>
  values.length === 0
    ? { status: 200, body: { responseCode: 200, values: [], handle } }
    : { status: 200, body: { responseCode: 1, handle, values } };

const names = fc.oneof(
  fc.constantFrom(
    '21.T1/a',
    '21.t1/A',
    '21.T1/b',
    '21.T1/..',
    '21.T1//',
    '0.NA/21.T1',
    '21.T1',
    '',
    '.',
    'a%2Fb',
  ),
  texts.map((text) => `21.T1/${text}`),
  texts,
);

type Selection = { indexes: number[]; types: string[] };

function queryOf({ indexes, types }: Selection): string {
  const query = new URLSearchParams();
  for (const index of indexes) query.append('index', String(index));
  for (const type of types) query.append('type', type);
  return query.toString();
}

/** Returns the status and body of a single GET for each handle, in sequence. */
async function singleGets(proxy: Proxy, handles: string[], query: string): Promise<unknown[]> {
  const elements = [];
  for (const handle of handles) {
    const { status, text } = await proxy.ask(`/api/handles/${handleToPath(handle)}?${query}`);
    elements.push({ handle, status, body: JSON.parse(text) as unknown });
  }
  return elements;
}

describe('batch request', () => {
  test('returns the responses of single GETs, by query and by body, from a cold and a warm cache', async () => {
    const env = fixed({
      upstream: { breaker: { failures: 10_000 } },
      http: { maxRequestLineBytes: 65_536 },
    });
    const [single, batch] = [await startProxy(env), await startProxy(env)];
    let known: ((handle: string) => Answer)[] = [];
    mockUpstream((target) => {
      const handle = handleOfTarget(target);
      // All spellings of a handle have the same response.
      return known[handleRef(handle, false).key.length % known.length]!(handle);
    });
    const scenario = fc.record({
      list: fc.array(names, { maxLength: 12 }),
      answered: fc.array(answers, { minLength: 1, maxLength: 5 }),
      selection: selections,
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ list, answered, selection }) => {
        known = answered;
        for (const { app, pass } of [single, batch]) {
          await request(app.admin).post('/purge').send({ all: true }).expect(200);
          pass(60_000);
        }
        const expected = await singleGets(single, list, queryOf(selection));
        const body = { handles: list, type: selection.types, index: selection.indexes };
        expect(elementsOf(await postBatch(batch, body))).toEqual(expected);
        expect(elementsOf(await postBatch(batch, body))).toEqual(expected);
        if (list.length === 0) return;
        const target = batchTarget(list, `&${queryOf(selection)}`);
        expect(elementsOf(await batch.ask(target))).toEqual(expected);
      }),
      { numRuns: rounds(60) },
    );
  });
});
