// Recorded reads, replayed through the proxy between recorded writes: responses equal those of Handle.Net 9.3.1.
import '../support/real-sockets.js';
import { describe, it } from 'vitest';
import { expectRecorded, recordedReads, replayThroughProxy } from '../support/recorded-proxy.js';

const answerTo = replayThroughProxy();

describe('recorded reads of a Handle server through the proxy', () => {
  it.each(recordedReads)('$name', async (recording) => {
    expectRecorded(recording, await answerTo(recording));
  });
});
