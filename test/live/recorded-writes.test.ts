// Recorded writes, replayed through the proxy: responses equal those of Handle.Net 9.3.1.
import '../support/real-sockets.js';
import { describe, expect, it } from 'vitest';
import { waivers } from '../support/proxy-waivers.js';
import { expectRecorded, recordedWrites, replayThroughProxy } from '../support/recorded-proxy.js';
import { handleServerRecordings } from '../support/recordings.js';

const answerTo = replayThroughProxy();

describe('recorded Handle server writes through the proxy', () => {
  describe('return the responses of Handle.Net', () => {
    it.each(recordedWrites)('$name', async (recording) => {
      expectRecorded(recording, await answerTo(recording));
    });
  });

  it('include a recording for every waiver', () => {
    const names = handleServerRecordings.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.keys(waivers)));
  });
});
