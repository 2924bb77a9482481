import { describe, expect, test } from 'vitest';
import { createReportHit } from '../../src/native/message-log.js';

const hit = {
  family: 'native-tunnel',
  method: 'RESOLUTION',
  handle: '21.T1/page',
  status: 1,
  exists: true,
  repeats: 0,
} as const;

function reportTwice(target: string): object[] {
  const counted: object[] = [];
  const reportHit = createReportHit(
    { spans: [] },
    {
      count: (line) => counted.push(line),
    },
  );
  for (let times = 0; times < 2; times++) reportHit(hit, { target, requestId: undefined }, undefined);
  return counted;
}

describe('report of native tunnel hits', () => {
  test('is shared by hits for the same target, so that the log line is built once', () => {
    const [first, second] = reportTwice('/');
    expect(second).toBe(first);
    expect(first).toMatchObject({ method: 'POST', target: '/', status: 200 });
  });

  test('is not retained for a long target, to bound the memory of 200,000 prepared responses', () => {
    const [first, second] = reportTwice(`/${'x'.repeat(4000)}`);
    expect(second).toEqual(first);
    expect(second).not.toBe(first);
  });
});
