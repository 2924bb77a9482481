import { describe, expect, test } from 'vitest';
import { type ErrorCode, ServiceError } from '../../src/errors.js';
import { allowsDeletion, judgeWrite } from '../../src/write/decisions.js';
import type { WriteOutcome } from '../../src/handle/outcome.js';

describe('write outcome by response', () => {
  test.each<[WriteOutcome, [status: number, responseCode?: number][]]>([
    ['changed', [[200, 1], [201, 1], [204], [200], [299]]],
    ['changed', [[404, 100], [404]]],
    [
      'unchanged',
      [
        [404, 4],
        [404, 301],
      ],
    ],
    ['unchanged', [[300, 302], [301], [302], [304], [307]]],
    ['unchanged', [[400, 4], [400, 200], [400, 202], [400, 301], [401], [401, 402], [403, 400], [405, 4]]],
    ['unchanged', [[409, 101], [409, 201], [412], [413], [414], [415], [429, 3]]],
    ['unchanged', [[501], [501, 4], [501, 5]]],
    ['unknown', [[500], [500, 2], [500, 406], [502], [503], [503, 3], [503, 7], [504], [505], [599]]],
    ['unknown', [[0], [100], [101], [199]]],
  ])('is %s for %j', (outcome, answers) => {
    for (const [status, responseCode] of answers) expect(judgeWrite({ status, responseCode })).toBe(outcome);
  });
});

describe('write outcome by error', () => {
  test.each<[WriteOutcome, ErrorCode[]]>([
    ['unchanged', ['UPSTREAM_CONNECT_FAILED', 'OVERLOADED', 'BAD_REQUEST']],
    ['unknown', ['UPSTREAM_TIMEOUT', 'UPSTREAM_UNREACHABLE', 'UPSTREAM_INVALID_RESPONSE', 'INTERNAL']],
  ])('is %s for %j', (outcome, codes) => {
    for (const code of codes) expect(judgeWrite({ failure: new ServiceError(code) })).toBe(outcome);
  });

  test('is unknown for an error outside the catalogue', () => {
    expect(judgeWrite({ failure: new Error('out of the blue') })).toBe('unknown');
  });
});

describe('deletion', () => {
  const none = { handles: false, values: false, allowedFor: [] as string[] };

  test.each<[string, typeof none, 'handle' | 'values', boolean]>([
    ['of a handle by default', none, 'handle', false],
    ['of values by default', none, 'values', false],
    ['of a handle with deletion.handles', { ...none, handles: true }, 'handle', true],
    ['of values with deletion.handles', { ...none, handles: true }, 'values', false],
    ['of a handle with deletion.values', { ...none, values: true }, 'handle', false],
    ['of values with deletion.values', { ...none, values: true }, 'values', true],
    ['of a handle in deletion.allowedFor', { ...none, allowedFor: ['21.T1/TEST-*'] }, 'handle', true],
    ['of values in deletion.allowedFor', { ...none, allowedFor: ['21.T1/TEST-*'] }, 'values', true],
    ['of a handle not in deletion.allowedFor', { ...none, allowedFor: ['21.T1/OTHER-*'] }, 'handle', false],
  ])('%s by %j: %s is %s', (_what, rules, scope, expected) => {
    expect(allowsDeletion(rules, scope, '21.T1/TEST-1')).toBe(expected);
  });
});
