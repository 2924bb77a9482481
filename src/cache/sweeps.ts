// Purges of many keys at once: rules that are applied to what is kept when it is looked at.
import type { Times } from './entry.js';

/** All keys that begin with `prefix`; every key when it is empty. */
export interface Sweep {
  prefix: string;
  /** What is kept may still stand in for an upstream that fails; else it is gone. */
  isSoft: boolean;
}

/** `number` grows from rule to rule; `at`: since when (ms) what is kept counts as stale. */
export interface Rule extends Sweep {
  number: number;
  at: number;
}

/** Each store of an entry and each load looks through the rules that are newer than itself. */
const MOST_RULES = 200;

/**
 * Rules cost nothing when they are made, however much is kept, and they hold for what is on its way
 * too. When they are too many, the oldest becomes a floor: what is older than it counts as swept,
 * whatever its key. That costs loads; it never costs the truth.
 */
export class Sweeps {
  /** The oldest first. */
  #rules: Rule[] = [];
  #floor = { gone: 0, stale: 0 };

  /** The number of the newest rule. */
  get latest(): number {
    return this.#rules.at(-1)?.number ?? Math.max(this.#floor.gone, this.#floor.stale);
  }

  get rules(): readonly Rule[] {
    return this.#rules;
  }

  /** Tells whether the rule is news. */
  add(rule: Rule): boolean {
    if (this.#isMoot(rule)) return false;
    this.#rules = [...this.#rules.filter((known) => !covers(rule, known)), rule];
    this.#rules.sort((one, other) => one.number - other.number);
    if (this.#rules.length <= MOST_RULES) return true;
    const dropped = this.#rules.shift();
    if (dropped) this.#floor[dropped.isSoft ? 'stale' : 'gone'] = dropped.number;
    return true;
  }

  /** Whether a rule for the key is newer than the number. */
  isSince(key: string, number: number): boolean {
    if (number < this.#floor.gone || number < this.#floor.stale) return true;
    for (let at = this.#rules.length - 1; at >= 0; at--) {
      const rule = this.#rules[at];
      if (rule === undefined || rule.number <= number) return false;
      if (key.startsWith(rule.prefix)) return true;
    }
    return false;
  }

  /** What is left of an entry from the time of that number: itself when no rule is about it. */
  apply<T extends Times>(key: string, entry: T, number: number): T | undefined {
    if (number >= this.latest) return entry;
    if (number < this.#floor.gone) return undefined;
    let left = number < this.#floor.stale ? staleFrom(entry, 0) : entry;
    for (const rule of this.#rules) {
      if (rule.number <= number || !key.startsWith(rule.prefix)) continue;
      if (!rule.isSoft) return undefined;
      left = staleFrom(left, rule.at);
    }
    return left;
  }

  #isMoot(rule: Rule): boolean {
    if (rule.number <= Math.max(this.#floor.gone, this.#floor.stale)) return true;
    return this.#rules.some((known) => known.number === rule.number || covers(known, rule));
  }
}

/** Whether `rule` does all that the older one does. */
const covers = (rule: Rule, older: Rule): boolean =>
  rule.number > older.number && older.prefix.startsWith(rule.prefix) && (!rule.isSoft || older.isSoft);

/** The entry as one that may only stand in, since `at`. */
export function staleFrom<T extends Times>(entry: T, at: number): T {
  return { ...entry, staleAt: Math.min(entry.staleAt, Math.max(at, entry.cachedAt)) };
}
