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

describe('ePIC v2 DELETE while deletion is disabled', () => {
  test('returns 403 with the reason for an existing handle, and deletes nothing', async () => {
    const { answer, sent } = await removed([reply.record(RECORD)], {});
    expect([answer.status, sent]).toEqual([403, [LOOK]]);
    expect(read(answer)).toMatchObject({
      code: 'V2_NO_DELETE',
      detail: expect.stringContaining('nodelete') as string,
    });
  });

  test('returns 404 for a missing handle', async () => {
    const { answer, sent } = await removed([reply.missing], {});
    expect([answer.status, sent]).toEqual([404, [LOOK]]);
  });

  test('returns 412 rather than 403 for a failed precondition', async () => {
    const { answer } = await removed([reply.missing], {}, { 'If-Match': '*' });
    expect(answer.status).toBe(412);
  });

  test('deletes a handle in deletion.allowedFor', async () => {
    const script = [reply.record(RECORD), reply.done];
    const { answer, sent } = await removed(script, { DELETION_ALLOWED_FOR: '21.T11998/a*' });
    expect([answer.status, sent]).toEqual([204, [LOOK, REMOVE]]);
  });
});

describe('ePIC v2 DELETE while deletion is enabled', () => {
  const on = { DELETION_HANDLES: 'true' };

  test('checks the login with a read before deleting', async () => {
    const { answer, sent } = await removed([reply.record(RECORD), reply.done], on);
    expect([answer.status, answer.text, sent]).toEqual([204, '', [LOOK, REMOVE]]);
  });

  test('stops after the read for a wrong login or a missing handle', async () => {
    for (const [said, status] of [
      [reply.wrongLogin, 401],
      [reply.missing, 404],
    ] as const) {
      const { answer, sent } = await removed([said], on);
      expect([answer.status, sent]).toEqual([status, [LOOK]]);
      nock.cleanAll();
    }
  });

  test('deletes with the current ETag in If-Match', async () => {
    const { answer, sent } = await removed([reply.record(RECORD), reply.done], on, {
      'If-Match': recordEtag(RECORD),
    });
    expect([answer.status, sent]).toEqual([204, [LOOK, REMOVE]]);
  });

  test('returns 412 for a different ETag in If-Match', async () => {
    const { answer, sent } = await removed([reply.record(RECORD)], on, { 'If-Match': '"old"' });
    expect([answer.status, sent]).toEqual([412, [LOOK]]);
  });
});
