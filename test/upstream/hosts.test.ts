// The lookup of host names: while no name server responds, the last addresses are used.
import type { LookupAddress, LookupOptions } from 'node:dns';
import { describe, expect, it, vi } from 'vitest';
import { createHostLookup } from '../../src/upstream/hosts.js';
import { createManualClock } from '../support/manual-clock.js';

const ONE: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }];
const OTHER: LookupAddress[] = [
  { address: '2001:db8::2', family: 6 },
  { address: '192.0.2.2', family: 4 },
];
const failure = (code: string): Error => Object.assign(new Error(code), { code });

function openLookup() {
  const system = vi.fn<(host: string) => Promise<LookupAddress[]>>().mockResolvedValue(ONE);
  const clock = createManualClock();
  const lookup = createHostLookup(system, clock);
  const find = (options: LookupOptions = { all: true }): Promise<unknown> =>
    new Promise((resolve) => {
      lookup('handle.example.org', options, (error, ...found) => resolve(error?.code ?? found));
    });
  return { system, clock, find };
}

describe('lookup of a host name', () => {
  it('asks the system each time, in the form that the caller wants', async () => {
    const { system, find } = openLookup();
    expect(await find()).toEqual([ONE]);
    system.mockResolvedValue(OTHER);
    expect(await find()).toEqual([OTHER]);
    expect(await find({ all: false })).toEqual(['2001:db8::2', 6]);
  });

  it('returns the last addresses while no name server can be reached', async () => {
    const { system, find } = openLookup();
    await find();
    system.mockRejectedValue(failure('EAI_AGAIN'));
    expect(await find()).toEqual([ONE]);
    system.mockResolvedValue(OTHER);
    expect(await find()).toEqual([OTHER]);
  });

  it('returns the last addresses after a second while the name servers are silent, with one request', async () => {
    const { system, clock, find } = openLookup();
    await find();
    system.mockReturnValue(new Promise(() => undefined));
    const found = [find(), find()];
    await clock.pass(1000);
    expect(await Promise.all(found)).toEqual([[ONE], [ONE]]);
    expect(system).toHaveBeenCalledTimes(2);
  });

  it('fails for a name that no longer exists, or that was never found', async () => {
    const { system, find } = openLookup();
    system.mockRejectedValueOnce(failure('EAI_AGAIN'));
    expect(await find()).toBe('EAI_AGAIN');
    expect(await find()).toEqual([ONE]);
    system.mockRejectedValue(failure('ENOTFOUND'));
    expect(await find()).toBe('ENOTFOUND');
  });
});
