// A bare flag means true in the documentation of the record interface, but not to the server: it is spelled out.
import { expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

test.each([
  ['overwrite', 'overwrite=true'],
  ['overwrite=', 'overwrite=true'],
  ['mintNewSuffix', 'mintNewSuffix=true'],
  ['mintNewSuffix=&overwrite', 'mintNewSuffix=true&overwrite=true'],
  ['index=1&overwrite&index=2', 'index=1&overwrite=true&index=2'],
  ['overwrite=false', 'overwrite=false'],
  ['overwrite=TRUE', 'overwrite=TRUE'],
  ['overwrite=yes&mintNewSuffix=0', 'overwrite=yes&mintNewSuffix=0'],
  ['xoverwrite&overwrite2&Overwrite', 'xoverwrite&overwrite2&Overwrite'],
])('PUT ?%s goes on as ?%s', async (query, expected) => {
  const sent = mockWrites();
  const proxy = await startProxy();
  await proxy.ask(`${PATH}?${query}`, { method: 'PUT', body: '[]' });
  expect(sent.map(({ target }) => target)).toEqual([`${PATH}?${expected}`]);
});

test('other methods have no such flags', async () => {
  const sent = mockWrites();
  const proxy = await startProxy({ DELETION_HANDLES: 'true' });
  for (const method of ['DELETE', 'POST']) await proxy.ask(`${PATH}?overwrite`, { method });
  expect(sent.map(({ target }) => target)).toEqual([`${PATH}?overwrite`, `${PATH}?overwrite`]);
});
