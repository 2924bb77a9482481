import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createDropReport } from '../../src/server/connections.js';
import { testContext } from '../support/context.js';

describe('drop report', () => {
  test('logs one line per minute with the number of connections dropped since the previous line', () => {
    let now = 0;
    const context = testContext({ clock: { ...systemClock, now: () => now } });
    const report = createDropReport(context, 'http', 'too many');
    for (let times = 0; times < 3; times++) report('total', '192.0.2.0/24');
    now = 60_000;
    report('network', '198.51.100.0/24');
    expect(context.lines).toMatchObject([
      { reason: 'total', network: '192.0.2.0/24', dropped: 1 },
      { reason: 'network', network: '198.51.100.0/24', dropped: 3 },
    ]);
  });
});
