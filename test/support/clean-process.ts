// Before each test file, because files share processes: nothing is left of the nock and the fake timers of another one.
import nock from 'nock';
import { vi } from 'vitest';

// Importing it has replaced node:http.
nock.restore();
vi.useRealTimers();
