// Counts of the traffic rules since the start, as metrics and for the admin API.
import type { Context } from '../../context.js';
import { METRICS, type RuleResult, RULE_RESULTS, type TrafficReport } from './plugin.js';

type CountsOfRule = TrafficReport['rules'][number];

export interface RuleCounts {
  /** Starts the metrics of a rule at 0. */
  add: (rule: string) => void;
  count: (rule: string, result: RuleResult) => void;
  of: (rule: string) => CountsOfRule;
}

/** Creates the counts, which a reload preserves. */
export function createRuleCounts({ counterOf }: Context['metrics']): RuleCounts {
  const increment = counterOf(METRICS.rules);
  const byRule = new Map<string, CountsOfRule>();
  const countsOf = (name: string): CountsOfRule =>
    byRule.get(name) ?? { name, matched: 0, limited: 0, shadowed: 0 };
  return {
    add(rule) {
      for (const result of RULE_RESULTS) increment({ rule, result }, 0);
    },
    count(rule, result) {
      increment({ rule, result });
      const counts = countsOf(rule);
      byRule.set(rule, { ...counts, [result]: counts[result] + 1 });
    },
    of: countsOf,
  };
}
