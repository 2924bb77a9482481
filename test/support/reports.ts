// Reads resolution reports, and keeps the ledger they are compared with.
import request from 'supertest';
import type { ResolutionReport } from '../../src/plugins/reports/plugin.js';
import type { Proxy } from './proxy.js';

export async function reportOf({ app }: Proxy, prefix: string, month?: string): Promise<ResolutionReport> {
  const query = { prefix, ...(month !== undefined && { month }) };
  return (await request(app.admin).get('/reports').query(query).expect(200)).body as ResolutionReport;
}

/** The reads of one prefix, as the sender knows them. */
export class ReadLedger {
  readonly #byInterface = new Map<string, number>();
  readonly #handles = new Map<string, number>();
  readonly #unknown = new Map<string, number>();
  robots = 0;

  add(handle: string, by: string, exists: boolean): void {
    const list = exists ? this.#handles : this.#unknown;
    for (const [counts, name] of [
      [this.#byInterface, by],
      [list, handle.toUpperCase()],
    ] as const)
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  /** Returns the figures of an exact report. */
  figures(): Omit<ResolutionReport, 'prefix' | 'month'> {
    const sum = (counts: ReadonlyMap<string, number>): number =>
      [...counts.values()].reduce((all, count) => all + count, 0);
    return {
      resolutions: sum(this.#byInterface),
      unknown: sum(this.#unknown),
      robots: this.robots,
      byInterface: Object.fromEntries(this.#byInterface),
      topHandles: exactList(this.#handles),
      topUnknown: exactList(this.#unknown),
    };
  }
}

function exactList(counts: ReadonlyMap<string, number>): ResolutionReport['topHandles'] {
  const handles = [...counts]
    .map(([handle, count]) => ({ handle, count }))
    .sort((one, other) => other.count - one.count || (one.handle < other.handle ? -1 : 1));
  return { exact: true, maxError: 0, handles };
}
