// Sets up tests with nock: only loopback is real, and no mock outlives its test.
import nock from 'nock';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';

/** Activates nock; call it once at the top of a test file. */
export function useNock(): void {
  beforeAll(() => {
    if (!nock.isActive()) nock.activate();
    nock.disableNetConnect();
    nock.enableNetConnect('127.0.0.1');
  });
  afterEach(() => {
    const leftOver = nock.pendingMocks();
    nock.abortPendingRequests();
    nock.cleanAll();
    expect(leftOver).toEqual([]);
  });
  afterAll(() => {
    nock.restore();
  });
}
