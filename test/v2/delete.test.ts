// DELETE: what is asked of the Handle server, with and without nodelete.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { recordEtag } from '../../src/v2/conditions.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, askV2, read } from '../support/v2.js';
import { NAME, type Scripted, says, scriptUpstream, sends } from '../support/v2-upstream.js';
import { RECORD } from '../support/v2-record.js';

useNock();

const LOOK = sends('GET', `/${NAME}?auth=true`, USER01);
const REMOVE = sends('DELETE', `/${NAME}`, USER01);

async function removed(
  script: Scripted[],
  env: Record<string, string>,
  headers: Record<string, string> = {},
) {
  const { sent } = scriptUpstream(...script);
  const proxy = await startProxy(env);
  const answer = await askV2(proxy.url)(`/${NAME}`, { method: 'DELETE', headers });
  return { answer, sent };
}

describe('while deletion is off', () => {
  test('a handle that exists is 403 with the reason, and stays', async () => {
    const { answer, sent } = await removed([says.record(RECORD)], {});
    expect([answer.status, sent]).toEqual([403, [LOOK]]);
    expect(read(answer)).toMatchObject({
      code: 'V2_NO_DELETE',
      detail: expect.stringContaining('nodelete') as string,
    });
  });

  test('a handle that is missing is 404', async () => {
    const { answer, sent } = await removed([says.missing], {});
    expect([answer.status, sent]).toEqual([404, [LOOK]]);
  });

  test('a condition that does not hold is 412 first', async () => {
    const { answer } = await removed([says.missing], {}, { 'If-Match': '*' });
    expect(answer.status).toBe(412);
  });

  test('handles that may be deleted all the same are', async () => {
    const script = [says.record(RECORD), says.done];
    const { answer, sent } = await removed(script, { DELETION_ALLOWED_FOR: '21.T11998/a*' });
    expect([answer.status, sent]).toEqual([204, [LOOK, REMOVE]]);
  });
});

describe('where deletion is on', () => {
  const on = { DELETION_HANDLES: 'true' };

  test('the login is tried with a read before the handle is held and removed', async () => {
    const { answer, sent } = await removed([says.record(RECORD), says.done], on);
    expect([answer.status, answer.text, sent]).toEqual([204, '', [LOOK, REMOVE]]);
  });

  test('a wrong login and a handle that is missing end at the read', async () => {
    for (const [said, status] of [
      [says.wrongLogin, 401],
      [says.missing, 404],
    ] as const) {
      const { answer, sent } = await removed([said], on);
      expect([answer.status, sent]).toEqual([status, [LOOK]]);
      nock.cleanAll();
    }
  });

  test('with the tag of the present it is removed', async () => {
    const { answer, sent } = await removed([says.record(RECORD), says.done], on, {
      'If-Match': recordEtag(RECORD),
    });
    expect([answer.status, sent]).toEqual([204, [LOOK, REMOVE]]);
  });

  test('with another tag it stays', async () => {
    const { answer, sent } = await removed([says.record(RECORD)], on, { 'If-Match': '"old"' });
    expect([answer.status, sent]).toEqual([412, [LOOK]]);
  });
});
