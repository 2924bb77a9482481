// The login with which the handles of a mirrored prefix are listed.
import nock from 'nock';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { problemsFrom } from '../support/load-config.js';
import { basic } from '../support/demo.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';

useNock();

const LOGIN = { MIRROR_USER: '300:21.T1/ADMIN', MIRROR_PASSWORD: 'pass:word' };
const LIST = { responseCode: 1, prefix: '21.T1', totalCount: '0', handles: [] };

/** Mocks one list response, for a request whose headers match `options`. */
const mockList = (url: string, options: nock.Options): nock.Scope =>
  nock(url, options)
    .get('/api/handles')
    .query({ prefix: '21.T1', page: 0, pageSize: 10_000 })
    .reply(200, LIST);

const startMirror = (url: string) => startProxy({ UPSTREAM_URL: url, MIRROR_PREFIXES: '21.t1', ...LOGIN });

describe('mirror', () => {
  it('sends its login with a list request over https', async () => {
    const url = 'https://upstream.test:8000';
    const list = mockList(url, { reqheaders: { authorization: basic('300:21.T1/ADMIN', 'pass:word') } });
    await startMirror(url);
    await expect.poll(() => list.isDone()).toBe(true);
  });

  it('does not send its login over plain http to a different machine', async () => {
    const url = 'http://upstream.test:8000';
    const list = mockList(url, { badheaders: ['authorization'] });
    await startMirror(url);
    await expect.poll(() => list.isDone()).toBe(true);
  });

  it.each([
    [401, 'check mirror.user and mirror.password'],
    [403, 'list_handles'],
    [501, 'remove the prefix'],
  ])('logs a remedy when its list is refused with %s', async (status, remedy) => {
    const url = 'https://upstream.test:8000';
    nock(url).get('/api/handles').query(true).reply(status, { responseCode: 400 }).persist();
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const env = { UPSTREAM_URL: url, MIRROR_PREFIXES: '21.t1', ...LOGIN };
    await startProxy(env, { logger: createLogger({ level: 'warn', destination }) });
    await expect
      .poll(() => lines.find((line) => line.includes('mirrored prefix not listed')))
      .toContain(remedy);
  });

  it.each([{ MIRROR_USER: '300:21.T1/ADMIN' }, { MIRROR_PASSWORD: 'secret' }])(
    'requires both user and password (%o)',
    (env) => {
      const problems = problemsFrom({ env: { UPSTREAM_URL: 'https://upstream.test', ...env } }).join('\n');
      expect(problems).toMatch(/give mirror\.(?:user|password) too/);
      expect(problems).not.toContain('secret');
    },
  );

  it('rejects a pattern of prefixes', () => {
    const env = { UPSTREAM_URL: 'https://upstream.test', MIRROR_PREFIXES: '21.T1.*' };
    expect(problemsFrom({ env }).join('\n')).toContain('give prefixes such as 21.T1');
  });
});
