// Recordings of a real Handle.Net 9.3.1 server, which the demo server reproduces byte for byte and in order.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlledServer, createControlledServer } from '../support/demo-control.js';
import { createRecordedWorld } from '../support/recorded-world.js';
import {
  type Recording,
  handleServerRecordings,
  recordedAnswer,
  replay,
  withoutPageText,
} from '../support/recordings.js';
import { waivers } from './waivers.js';

const world = createRecordedWorld();
let server: ControlledServer;
let secureUrl: string;
let plainUrl: string;

beforeAll(async () => {
  server = createControlledServer(world.options);
  secureUrl = (await server.listen(0)).url;
  plainUrl = (await server.listenInsecurely(0)).url;
});

afterAll(async () => {
  await server.close();
});

/** Whether the request counted as secure: two recordings used an HTTP port marked as secure. */
const cameSecurely = ({ secure, name }: Recording): boolean => secure || name.includes('secure-marked');

describe('recording of a Handle server', () => {
  describe('is reproduced by the demo server', () => {
    it.each(handleServerRecordings)('$name', async (recording) => {
      const baseUrl = cameSecurely(recording) ? secureUrl : plainUrl;
      const answer = withoutPageText(await replay(world.turnTo(recording), { baseUrl }), recording);
      const recorded = withoutPageText(recordedAnswer(recording), recording);
      const waived = waivers[recording.name]?.answer;
      if (waived !== undefined) expect(waived, 'no longer needs its waiver').not.toEqual(recorded);
      expect(answer).toEqual(waived ?? recorded);
    });
  });

  it('exists for every waiver', () => {
    const names = handleServerRecordings.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.keys(waivers)));
  });
});
