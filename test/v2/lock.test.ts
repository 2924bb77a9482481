// The lock requires an accepted login and is fair between identities.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { fixed } from '../support/fixed.js';
import { recordEtag } from '../support/v2-values.js';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { UPSTREAM_URL } from '../support/upstream.js';
import { USER01, USER02, type V2Question, askV2, gist } from '../support/v2.js';
import { NAME } from '../support/v2-upstream.js';
import { ADMIN_VALUE, URL_INPUT, URL_VALUE } from '../support/v2-record.js';
import { basic } from '../support/demo.js';

useNock();

const WRONG = basic('300:21.T11998/USER01', 'wrong');
/** Maximum concurrent requests per login and handle: an eighth of `upstream.concurrency`. */
const OTHERS = 8;
const PATIENT = { timeout: 170_000 };

/** Mocks a Handle server that has one record, logs requests, and responds when `before` resolves. */
function startServer(before: (method: string, authorization: string) => Promise<void>) {
  let values: unknown[] = [URL_VALUE, ADMIN_VALUE];
  const asked: string[] = [];
  const answer = (method: string, body: nock.Body): nock.ReplyFnResult => {
    if (method === 'PUT') values = (body as unknown as { values: unknown[] }).values;
    if (method === 'DELETE') values = [];
    return [200, { responseCode: 1, handle: NAME, ...(method === 'GET' && { values }) }];
  };
  const scope = nock(UPSTREAM_URL).persist();
  for (const method of ['get', 'put', 'delete'] as const) {
    scope[method](/.*/)
      .optionally()
      .reply(function (_target, body, callback) {
        const name = method.toUpperCase();
        const given = this.req.headers['authorization'] as unknown as string | string[];
        const authorization = [given].flat().join();
        asked.push(`${name} ${authorization}`);
        void before(name, authorization).then(() => {
          callback(null, authorization === WRONG ? [401, ''] : answer(name, body));
        });
      });
  }
  return { asked };
}

const put = (question: V2Question = {}): V2Question => ({ method: 'PUT', body: [URL_INPUT], ...question });

describe('ePIC v2 handle lock with a wrong password', () => {
  const writes: [string, V2Question][] = [
    ['a PUT', put()],
    ['a create-only PUT', put({ headers: { 'If-None-Match': '*' } })],
    ['a conditional PUT', put({ headers: { 'If-Match': '*' } })],
    ['a DELETE', { method: 'DELETE' }],
    ['a conditional DELETE', { method: 'DELETE', headers: { 'If-Match': '*' } }],
  ];
  test.each(writes)('is not acquired for %s', async (_what, write) => {
    const held = gate();
    const { asked } = startServer((_method, login) => (login === WRONG ? held.opened : Promise.resolve()));
    const env = { DELETION_HANDLES: 'true', ...fixed({ v2: { lockWaitMs: 300 } }) };
    const v2 = askV2((await startProxy(env)).url);
    const refused = Array.from({ length: OTHERS }, () => v2(`/${NAME}`, { ...write, as: WRONG }));
    await expect.poll(() => asked.length).toBe(OTHERS);
    expect((await v2(`/${NAME}`, put())).status).toBe(204);
    held.open();
    expect((await Promise.all(refused)).map(({ status }) => status)).toEqual(Array(OTHERS).fill(401));
  });
});

describe('ePIC v2 handle lock with many writes from one caller', () => {
  test('lets a different caller write before most of these writes', async () => {
    const held = gate();
    const { asked } = startServer((method) => (method === 'PUT' ? held.opened : Promise.resolve()));
    const writers = (): string[] => asked.filter((line) => line.startsWith('PUT'));
    const v2 = askV2((await startProxy()).url);
    const first = v2(`/${NAME}`, put({ as: USER02 }));
    await expect.poll(writers).toHaveLength(1);
    const reads = asked.length;
    const many = Array.from({ length: OTHERS }, () => v2(`/${NAME}`, put({ as: USER02 })));
    await expect.poll(() => asked.length).toBe(reads + OTHERS);
    const owner = v2(`/${NAME}`, put());
    await expect.poll(() => asked.length).toBe(reads + OTHERS + 1);
    held.open();
    expect((await owner).status).toBe(204);
    for (const { status } of await Promise.all([first, ...many])) expect(status).toBe(204);
    // The owner writes before most of the others; one or two writes may still delay its read.
    expect(writers().indexOf(`PUT ${USER01}`)).toBeLessThan(5);
  });

  test('rejects writes beyond the queue limit with 503 and Retry-After', PATIENT, async () => {
    const held = gate();
    startServer((method) => (method === 'PUT' ? held.opened : Promise.resolve()));
    const v2 = askV2(
      (await startProxy({ UPSTREAM_CONCURRENCY: '500', ...fixed({ v2: { lockWaitMs: 600_000 } }) })).url,
    );
    const seen: unknown[] = [];
    const many = Array.from({ length: 140 }, async () => {
      const { status, headers } = await v2(`/${NAME}`, put({ as: USER02 }));
      seen.push([status, headers['retry-after']]);
    });
    await expect.poll(() => seen, PATIENT).toEqual(Array(12).fill([503, '1']));
    const owner = v2(`/${NAME}`, put());
    held.open();
    expect((await owner).status).toBe(204);
    // Otherwise they would be sent to the server of a later test.
    await Promise.all(many);
  });
});

describe('record read before the ePIC v2 lock', () => {
  const second = { type: 'URL', parsed_data: 'https://example.org/two' };

  test('is read again after an intervening write, which causes a 412 if the precondition now fails', async () => {
    const held = gate();
    const { asked } = startServer((method) => (method === 'PUT' ? held.opened : Promise.resolve()));
    const v2 = askV2((await startProxy()).url);
    const tag = recordEtag([URL_VALUE, ADMIN_VALUE]);
    const first = v2(`/${NAME}`, put({ body: [second], headers: { 'If-Match': tag } }));
    await expect.poll(() => asked).toHaveLength(2);
    const late = v2(`/${NAME}`, put({ as: USER02, headers: { 'If-Match': tag } }));
    await expect.poll(() => asked).toHaveLength(3);
    held.open();
    expect([(await first).status, (await late).status]).toEqual([204, 412]);
    expect(gist(await v2(`/${NAME}`))[0]).toEqual([1, 'URL', 'https://example.org/two']);
    expect(asked.filter((line) => line === `GET ${USER02}`)).toHaveLength(2);
  });

  test('is not read again when no write intervened', async () => {
    const { asked } = startServer(() => Promise.resolve());
    const v2 = askV2((await startProxy()).url);
    await v2(`/${NAME}`, put());
    await v2(`/${NAME}`, put());
    expect(asked.map((line) => line.split(' ')[0])).toEqual(['GET', 'PUT', 'GET', 'GET', 'PUT', 'GET']);
  });
});
