// Write flags are forwarded unchanged, because the Handle server reads a flag without a value as false.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

describe('write flags', () => {
  test.each([
    'overwrite',
    'overwrite=',
    'mintNewSuffix',
    'mintNewSuffix=&overwrite',
    'index=1&overwrite&index=2',
    'overwrite=false',
    'overwrite=TRUE',
    'overwrite=yes&mintNewSuffix=0',
  ])('are forwarded unchanged for a PUT with ?%s', async (query) => {
    const sent = mockWrites();
    const proxy = await startProxy();
    await proxy.ask(`${PATH}?${query}`, { method: 'PUT', body: '[]' });
    expect(sent.map(({ target }) => target)).toEqual([`${PATH}?${query}`]);
  });

  test.each([
    ['overwrite', ''],
    ['index=1&%6Fverwrite=true&&overwrite&index=%FF', 'index=1&index=%FF&'],
    ['&=&overwrite=true&a=b&overwrite', '=&a=b&'],
    ['?&overwrite=true&a', '?&a&'],
    ['%=&%FFoverwrite&overwrite=%FF', '%=&%FFoverwrite&'],
  ])('are forwarded without overwrite for a PUT with ?%s that only creates', async (query, others) => {
    const sent = mockWrites();
    const proxy = await startProxy();
    await proxy.ask(`${PATH}?${query}`, { method: 'PUT', body: '[]', headers: { 'If-None-Match': '*' } });
    expect(sent.map(({ target }) => target)).toEqual([`${PATH}?${others}overwrite=false`]);
  });
});
