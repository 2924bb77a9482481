// The log lines of a Redis that is lost and found again.
import { expect, it } from 'vitest';
import { createStateLog } from '../../../src/cache/cache.js';
import { testContext } from '../../support/context.js';
import { createManualClock } from '../../support/manual-clock.js';

const LOST = 'redis unavailable, answering from memory and upstream';
const FOUND = 'redis connected';

function start() {
  const clock = createManualClock();
  const context = testContext({ clock });
  const log = createStateLog(context);
  const lines = () =>
    context.lines.splice(0).map(({ msg, losses }) => (losses === undefined ? msg : [msg, losses]));
  return { clock, log, lines };
}

it('each loss and its end is logged', async () => {
  const { clock, log, lines } = start();
  log('up');
  for (let times = 0; times < 2; times++) {
    log('lost');
    await clock.pass(120_000);
    log('up');
    expect(lines()).toEqual(times === 0 ? [FOUND, LOST, FOUND] : [LOST, FOUND]);
  }
});

it('losses within a minute of a line are logged together, also if the last one lasts', async () => {
  const { clock, log, lines } = start();
  log('up');
  for (let second = 0; second < 60; second++) {
    log('lost');
    await clock.pass(500);
    log('up');
    await clock.pass(500);
  }
  expect(lines()).toEqual([FOUND, LOST, FOUND, [LOST, 59], FOUND]);
  log('lost');
  expect(lines()).toEqual([]);
  await clock.pass(60_000);
  expect(lines()).toEqual([LOST]);
  log('up');
  expect(lines()).toEqual([FOUND]);
});
