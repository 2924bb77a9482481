// A Handle server with one record for race tests.
import { ServiceError } from '../../src/errors.js';
import { toBytes } from '../../src/handle/bytes.js';
import type { Outcome } from '../../src/handle/outcome.js';

/** A point at which other actors may run. */
export type Step = (label: string) => Promise<unknown>;

/** The record is the number of its last write. A load reads it at some point between its start and end. */
export class RaceUpstream {
  record = 0;
  failures = 0;
  /** The record at the start of each in-flight load. */
  readonly underWay = new Set<{ record: number }>();

  constructor(readonly step: Step) {}

  async load(): Promise<Outcome> {
    const began = { record: this.record };
    this.underWay.add(began);
    await this.step('the question travels');
    const values = toBytes(String(this.record));
    await this.step('the answer travels');
    this.underWay.delete(began);
    if (this.failures > 0) {
      this.failures--;
      throw new ServiceError('UPSTREAM_FAILED');
    }
    return { kind: 'found', values, ttls: [86_400] };
  }
}
