// Runs before each test file, and removes the previous file's nock and fake timers, because files share
// processes.
import nock from 'nock';
import { vi } from 'vitest';

// Importing nock has replaced node:http.
nock.restore();
vi.useRealTimers();
