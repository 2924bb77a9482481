// Readiness is the sum of what the parts say.
import { expect, it } from 'vitest';
import { createReadiness } from '../../src/observe/readiness.js';

it('is ready when no part says no', () => {
  const readiness = createReadiness();
  expect(readiness.report()).toEqual({ ready: true, notReady: [] });
  readiness.register('redis', () => true);
  expect(readiness.report()).toEqual({ ready: true, notReady: [] });
});

it('names the parts that say no, and asks them anew each time', () => {
  const readiness = createReadiness();
  let listening = false;
  readiness.register('listener', () => listening);
  readiness.register('redis', () => true);
  expect(readiness.report()).toEqual({ ready: false, notReady: ['listener'] });
  listening = true;
  expect(readiness.report().ready).toBe(true);
});

it('refuses two parts of one name', () => {
  const readiness = createReadiness();
  readiness.register('redis', () => true);
  expect(() => {
    readiness.register('redis', () => true);
  }).toThrow('two parts are called redis');
});
