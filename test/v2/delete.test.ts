// DELETE: its upstream requests, with deletion off and on.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { recordEtag } from '../support/v2-values.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, askV2, read } from '../support/v2.js';
import { NAME, type Scripted, reply, scriptUpstream, sends } from '../support/v2-upstream.js';
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
  test('an existing handle is 403 with the reason, and is not deleted', async () => {
    const { answer, sent } = await removed([reply.record(RECORD)], {});
    expect([answer.status, sent]).toEqual([403, [LOOK]]);
    expect(read(answer)).toMatchObject({
      code: 'V2_NO_DELETE',
      detail: expect.stringContaining('nodelete') as string,
    });
  });

  test('a missing handle is 404', async () => {
    const { answer, sent } = await removed([reply.missing], {});
    expect([answer.status, sent]).toEqual([404, [LOOK]]);
  });

  test('a failed precondition is 412 before 403', async () => {
    const { answer } = await removed([reply.missing], {}, { 'If-Match': '*' });
    expect(answer.status).toBe(412);
  });

  test('handles of deletion.allowedFor are deleted', async () => {
    const script = [reply.record(RECORD), reply.done];
    const { answer, sent } = await removed(script, { DELETION_ALLOWED_FOR: '21.T11998/a*' });
    expect([answer.status, sent]).toEqual([204, [LOOK, REMOVE]]);
  });
});

describe('while deletion is on', () => {
  const on = { DELETION_HANDLES: 'true' };

  test('a read checks the login before the lock and the deletion', async () => {
    const { answer, sent } = await removed([reply.record(RECORD), reply.done], on);
    expect([answer.status, answer.text, sent]).toEqual([204, '', [LOOK, REMOVE]]);
  });

  test('a wrong login and a missing handle end at the read', async () => {
    for (const [said, status] of [
      [reply.wrongLogin, 401],
      [reply.missing, 404],
    ] as const) {
      const { answer, sent } = await removed([said], on);
      expect([answer.status, sent]).toEqual([status, [LOOK]]);
      nock.cleanAll();
    }
  });

  test('the current ETag deletes', async () => {
    const { answer, sent } = await removed([reply.record(RECORD), reply.done], on, {
      'If-Match': recordEtag(RECORD),
    });
    expect([answer.status, sent]).toEqual([204, [LOOK, REMOVE]]);
  });

  test('another ETag is 412', async () => {
    const { answer, sent } = await removed([reply.record(RECORD)], on, { 'If-Match': '"old"' });
    expect([answer.status, sent]).toEqual([412, [LOOK]]);
  });
});
