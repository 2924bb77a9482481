import { describe, expect, test } from 'vitest';
import { canReusePort } from '../../src/config/start-problems.js';

describe('reusePort support', () => {
  test.each([
    ['unavailable', '20.19.5', 'linux'],
    ['unavailable', '22.11.0', 'linux'],
    ['available', '22.12.0', 'linux'],
    ['unavailable', '23.0.0', 'linux'],
    ['available', '23.1.0', 'linux'],
    ['available', '24.0.0', 'freebsd'],
    ['unavailable', '24.0.0', 'darwin'],
    ['unavailable', '24.0.0', 'win32'],
  ])('is %s on Node.js %s on %s', (support, version, platform) => {
    expect(canReusePort(version, platform)).toBe(support === 'available');
  });
});
