import { describe, expect, it } from 'vitest';
import { createReadiness } from '../../src/observe/health.js';

describe('readiness', () => {
  it('is reported when every check passes', () => {
    const readiness = createReadiness();
    expect(readiness.report()).toEqual({ ready: true, notReady: [] });
    readiness.register('redis', () => true);
    expect(readiness.report()).toEqual({ ready: true, notReady: [] });
  });

  it('evaluates all checks for every report and lists the failed ones', () => {
    const readiness = createReadiness();
    let listening = false;
    readiness.register('listener', () => listening);
    readiness.register('redis', () => true);
    expect(readiness.report()).toEqual({ ready: false, notReady: ['listener'] });
    listening = true;
    expect(readiness.report().ready).toBe(true);
  });

  it('rejects a duplicate check name', () => {
    const readiness = createReadiness();
    readiness.register('redis', () => true);
    expect(() => {
      readiness.register('redis', () => true);
    }).toThrow('duplicate readiness check redis');
  });
});
