// Top handles: exact up to a thousand hits per second, then sampled.
import { expect, onTestFinished, test } from 'vitest';
import { type Activity, createActivity } from '../../src/observe/activity.js';

function start(): Activity {
  const activity = createActivity(() => 1_000_000);
  onTestFinished(() => {
    activity.close();
  });
  return activity;
}

const hit = (activity: Activity, handle: string, times: number): void => {
  for (let at = 0; at < times; at++) activity.countHit(handle, 'record');
};

test('the first thousand hits of a second are counted exactly by handle', () => {
  const activity = start();
  hit(activity, '21.T1/often', 997);
  hit(activity, '21.T1/seldom', 3);
  expect(activity.report().topHandles).toEqual([
    { name: '21.T1/often', count: 997 },
    { name: '21.T1/seldom', count: 3 },
  ]);
});

test('further hits are sampled 1 in 16 with weight 16, and all count as hits', () => {
  const activity = start();
  hit(activity, '21.T1/first', 1000);
  hit(activity, '21.T1/then', 16_000);
  const { results, topHandles } = activity.report();
  expect(results).toEqual({ hit: 17_000 });
  expect(topHandles).toEqual([
    { name: '21.T1/then', count: 16_000 },
    { name: '21.T1/first', count: 1000 },
  ]);
});
