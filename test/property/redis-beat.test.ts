// Whatever is delivered when, and whoever stands still: once a roll call is over nobody trusts what it overtook.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PROOF_LIFE_MS } from '../../src/cache/trust.js';
import { type BeatBus, type Instance, createBeatBus } from '../support/beat-bus.js';

type Step =
  | { kind: 'prove' | 'hearAll'; who: number }
  | { kind: 'hear'; who: number; master: number }
  | { kind: 'tell'; who: number }
  | { kind: 'pass'; ms: number };

const WHO = { who: fc.nat(2) };
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('prove', 'hearAll'), ...WHO }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('hear'), ...WHO, master: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('tell'), ...WHO }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass'), ms: fc.nat(PROOF_LIFE_MS) }) },
  ) satisfies fc.Arbitrary<Step>,
  { minLength: 10, maxLength: 120 },
);

/** What every instance believes the moment a call is over. */
function watch(number: number, heard: Promise<void>, instances: Instance[]): Promise<void> {
  return heard.then(() => {
    for (const each of instances) {
      if (each.trustsItsMemory()) expect(Math.min(...each.obeyed)).toBeGreaterThanOrEqual(number);
    }
  });
}

async function run(list: Step[], bus: BeatBus): Promise<number> {
  const instances = ['a', 'b', 'c'].map((name) => bus.join(name));
  const failures: unknown[] = [];
  let over = 0;
  for (const step of list) {
    if (step.kind === 'pass') bus.clock.ms += step.ms;
    else {
      const instance = instances[step.who] as Instance;
      if (step.kind === 'hear') instance.hear(step.master);
      else if (step.kind === 'tell') {
        const { number, heard } = instance.tell();
        const others = instances.filter((each) => each !== instance);
        watch(number, heard, others).then(
          () => over++,
          (failure: unknown) => failures.push(failure),
        );
      } else instance[step.kind]();
    }
    // The promises of this step settle before the next: a process does not stand still in the middle of one.
    for (let turn = 0; turn < 8; turn++) await Promise.resolve();
  }
  if (failures.length > 0) throw failures[0];
  return over;
}

test.each([1, 2])('with %i masters', async (masters) => {
  let over = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      over += await run(list, createBeatBus({ masters }));
    }),
    { numRuns: 2000 },
  );
  expect(over).toBeGreaterThan(100);
});
