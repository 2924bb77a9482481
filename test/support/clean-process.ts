// Before each test file, because files share processes: removes nock and the fake timers of the previous file.
import nock from 'nock';
import { vi } from 'vitest';

// The import has replaced node:http.
nock.restore();
vi.useRealTimers();
