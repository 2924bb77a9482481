// When the bans of a cache in front are repeated, by a clock that the test advances.
import { expect, test } from 'vitest';
import type { Host } from '../../src/host.js';
import { start } from '../../src/plugins/fronts/fronts.js';
import type { FrontsConfig } from '../../src/plugins/fronts/plugin.js';
import { createManualClock } from '../support/manual-clock.js';
import { partial } from '../support/partial.js';
import { testContext } from '../support/context.js';

const [SETTLE_MS, REPEAT_MS] = [10, 1000];
const SETTINGS = partial<FrontsConfig>({
  fronts: {
    urls: ['http://front.example'],
    unconfirmedWrites: 'reject',
    settleMs: SETTLE_MS,
    repeatMs: REPEAT_MS,
  },
});

/** Starts the plugin with a front whose bans are confirmed by `confirm`, and that has been emptied twice. */
async function startWithFront() {
  const clock = createManualClock();
  const banned: string[] = [];
  let confirm = (): void => undefined;
  const send = (_url: string, { headers }: RequestInit): Promise<Response> => {
    const keys = new Headers(headers).get('surrogate-key') ?? '';
    banned.push(keys);
    return new Promise((resolve) => {
      confirm = () => resolve(new Response('', { headers: { 'surrogate-banned': keys } }));
    });
  };
  const metrics = { ...testContext().metrics, counterOf: () => () => undefined };
  const host = partial<Host>({ ...testContext({ clock }), metrics });
  const { published } = start(host, SETTINGS, () => ({ send, close: () => Promise.resolve() }));
  /** Confirms the ban in flight, and returns those sent by the end of the time, without the others before. */
  const confirmAndPass = async (ms: number): Promise<string[]> => {
    confirm();
    await clock.pass(0);
    await clock.pass(ms);
    return banned.splice(0);
  };
  const write = async (key: string): Promise<void> => {
    void published?.({ key });
    await clock.pass(2 * SETTLE_MS);
  };
  await confirmAndPass(REPEAT_MS);
  await confirmAndPass(REPEAT_MS);
  return { banned, confirmAndPass, write };
}

test('the ban of a second write is repeated too, if it is sent together with the repeat of the first', async () => {
  const { banned, confirmAndPass, write } = await startWithFront();
  await write('21.T1/A');
  const [first] = await confirmAndPass(REPEAT_MS - 4 * SETTLE_MS);
  await write('21.T1/B');
  // Waits for the ban of B, and is joined by the repeat of the first.
  await write('21.T1/A');
  const [other] = banned.splice(0);
  expect(await confirmAndPass(0)).toEqual([first]);
  expect(await confirmAndPass(REPEAT_MS)).toEqual([other]);
  expect(await confirmAndPass(0)).toEqual([first]);
  expect(await confirmAndPass(2 * REPEAT_MS)).toEqual([]);
});
