// Reads through the proxy, between the recorded writes, are answered as a real Handle.Net 9.3.1 server did.
import '../support/real-sockets.js';
import { describe, it } from 'vitest';
import { expectRecorded, recordedReads, replayThroughProxy } from '../support/recorded-proxy.js';

const answers = replayThroughProxy();

describe('a read through the proxy is answered as on the real server:', () => {
  it.each(recordedReads)('$name', (recording) => {
    expectRecorded(recording, answers.get(recording.name));
  });
});
