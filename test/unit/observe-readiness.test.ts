// Readiness as the combination of all registered checks.
import { describe, expect, it } from 'vitest';
import { createReadiness } from '../../src/observe/health.js';

describe('readiness', () => {
  it('is ready when every check passes', () => {
    const readiness = createReadiness();
    expect(readiness.report()).toEqual({ ready: true, notReady: [] });
    readiness.register('redis', () => true);
    expect(readiness.report()).toEqual({ ready: true, notReady: [] });
  });

  it('lists failed checks and evaluates them on every report', () => {
    const readiness = createReadiness();
    let listening = false;
    readiness.register('listener', () => listening);
    readiness.register('redis', () => true);
    expect(readiness.report()).toEqual({ ready: false, notReady: ['listener'] });
    listening = true;
    expect(readiness.report().ready).toBe(true);
  });

  it('rejects two checks with one name', () => {
    const readiness = createReadiness();
    readiness.register('redis', () => true);
    expect(() => {
      readiness.register('redis', () => true);
    }).toThrow('duplicate readiness check redis');
  });
});
