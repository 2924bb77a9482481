// Traffic rules that never match a hit add no cost to hits.
import { describe, expect, test, vi } from 'vitest';
import type { TrafficRule } from '../../src/plugins/traffic/plugin.js';
import { admissionWith } from '../support/traffic.js';

const plain = { name: 'rule', log: false, shadow: false, robot: false };

const judgeOfHits = (rules: TrafficRule[]): unknown => admissionWith(rules, vi.fn()).judgeHits;

describe('traffic policy', () => {
  test.each<[string, TrafficRule[]]>([
    ['no rule', []],
    ['a rule with a class', [{ ...plain, match: {}, class: 'preferred' }]],
    ['a rule for misses', [{ ...plain, match: { reads: 'misses' }, answer: 429 }]],
  ])('adds no work to hits if there is %s', (_what, rules) => {
    expect(judgeOfHits(rules)).toBeUndefined();
  });

  test('checks hits when a rule applies to every request', () => {
    expect(judgeOfHits([{ ...plain, match: {}, answer: 429 }])).toBeDefined();
  });
});
