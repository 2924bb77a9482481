import { describe, expect, test } from 'vitest';
import { canReusePort } from '../../src/config/start-problems.js';

describe('reusePort support', () => {
  test.each([
    ['20.19.5', 'linux', false],
    ['22.11.0', 'linux', false],
    ['22.12.0', 'linux', true],
    ['23.0.0', 'linux', false],
    ['23.1.0', 'linux', true],
    ['24.0.0', 'freebsd', true],
    ['24.0.0', 'darwin', false],
    ['24.0.0', 'win32', false],
  ])('is available on Node.js %s on %s: %s', (version, platform, can) => {
    expect(canReusePort(version, platform)).toBe(can);
  });
});
