import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { selectLocation } from '../../src/plugins/locations/select.js';
import { startLeads, value } from '../support/leads.js';
import { randomFrom } from '../support/random.js';
import { useNock } from '../support/nock.js';
import { finish } from '../support/steps.js';

useNock();

function draw(weights: number[], { random, times }: { random: () => number; times: number }): number[] {
  const locations = weights.map((weight, at) => ({
    weight,
    score: 0,
    attributes: new Map([['href', String(at)]]),
  }));
  const counts = weights.map(() => 0);
  for (let count = 0; count < times; count++) {
    const facts = { attributes: [], country: undefined, address: '127.0.0.1', random: random() };
    const choice = finish(selectLocation(locations, [], facts));
    counts[Number(choice!.location.attributes.get('href'))]! += 1;
  }
  return counts;
}

/** Returns chi-squared; its 99.9th percentile is 16.3 for three degrees of freedom. */
function distance(counts: number[], weights: number[]): number {
  const times = counts.reduce((sum, count) => sum + count, 0);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const terms = weights.map((weight, at) => {
    const expected = (times * weight) / total;
    return expected === 0 ? counts[at]! * Infinity || 0 : (counts[at]! - expected) ** 2 / expected;
  });
  return terms.reduce((sum, term) => sum + term, 0);
}

describe('weighted locations', () => {
  test('are selected in proportion to their weights', () => {
    const random = randomFrom(20261121);
    for (const weights of [
      [1, 1, 1, 1],
      [0.1, 0.2, 0.3, 0.4],
      [5, 1, 0, 2],
      [1e9, 1, 1e9, 0],
    ]) {
      expect(distance(draw(weights, { random, times: 20_000 }), weights), weights.join()).toBeLessThan(16.3);
    }
  });

  test('favour the last location when all weights are 0, as HDLProxy does', () => {
    const random = randomFrom(7);
    for (const weights of [
      [0, 0],
      [0, 0, 0, 0],
      [NaN, 1, 2],
    ]) {
      const expected = weights.map((_, at) => (at === 0 ? 1 : at === weights.length - 1 ? 3 : 2));
      expect(distance(draw(weights, { random, times: 20_000 }), expected)).toBeLessThan(16.3);
    }
  });

  test('always select an infinite weight', () => {
    expect(draw([5, Infinity, 1], { random: randomFrom(8), times: 100 })).toEqual([0, 100, 0]);
  });

  test('exclude weight 0 when another weight is positive', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })), {
          minLength: 2,
          maxLength: 9,
        }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (weights, lot) => {
          fc.pre(weights.some((weight) => weight > 0));
          const counts = draw(weights, { random: () => lot, times: 1 });
          expect(weights[counts.indexOf(1)]).toBeGreaterThan(0);
        },
      ),
    );
  });

  const WEIGHTED =
    '<locations><location href="https://a.example.org/" weight="3"/><location href="https://b.example.org/" weight="1"/></locations>';

  test('are drawn again for each request from one cache entry', async () => {
    vi.spyOn(Math, 'random').mockImplementation(randomFrom(42));
    const leads = await startLeads({ drawn: [value(1, '10320/loc', WEIGHTED)] });
    const counts = { 'https://a.example.org/': 0, 'https://b.example.org/': 0 };
    for (let times = 0; times < 400; times++) {
      const [, place] = await leads.to('drawn');
      counts[place as keyof typeof counts] += 1;
    }
    expect(distance(Object.values(counts), [3, 1])).toBeLessThan(10.8);
    expect(leads.upstream.asked).toBe(1);
  });

  test('make the response private when drawn at random', async () => {
    const leads = await startLeads(
      {
        drawn: [value(1, '10320/loc', WEIGHTED)],
        sure: [value(1, '10320/loc', '<locations><location href="https://a.example.org/"/></locations>')],
      },
      { HTTP_SHARED_MAX_AGE: '90s' },
    );
    for (let times = 0; times < 2; times++) {
      expect((await leads.get('drawn')).headers['cache-control']).toBe('private, max-age=60');
      expect((await leads.get('sure')).headers['cache-control']).toBe('public, max-age=60, s-maxage=90');
    }
  });
});
