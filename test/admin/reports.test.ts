// Resolution reports from the real app cover every interface and match a ledger of the sent reads.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { answerByHandle } from '../support/batch.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { ReadLedger, reportOf } from '../support/reports.js';
import { READS } from '../support/reads-by-interface.js';
import '../support/real-sockets.js';
import { isWhole } from '../support/thorough.js';
import { mockUpstream } from '../support/upstream.js';
import { newFolder } from '../support/folder.js';

useNock();

const ON = { REPORTS_ENABLED: 'true' };
const PREFIX = '21.T1';
const ROBOT = { 'User-Agent': 'ExampleBot/1' };

describe('resolution reports', () => {
  it('warn at the start that they end with the process, unless Redis or a folder keeps them', async () => {
    const warnings = async (env: Record<string, string>): Promise<unknown[]> => {
      const lines: Record<string, unknown>[] = [];
      const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
      await startProxy(
        { ...ON, ...env },
        { logger: createLogger({ level: 'warn', destination: { write } }) },
      );
      return lines.map(({ msg, remedy }) => [msg, remedy]);
    };
    expect(await warnings({})).toEqual([
      ['reports end with this process', 'set redis.url or reports.folder'],
    ]);
    expect(await warnings({ REPORTS_FOLDER: newFolder() })).toEqual([]);
  });

  it('equal a ledger of reads through every interface, including prepared responses', async () => {
    mockUpstream(answerByHandle);
    const native = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' };
    const proxy = await startProxy({ ...ON, ...native, V2_ANONYMOUS_READ: 'true' });
    const ledger = new ReadLedger();
    const names = Array.from({ length: 12 }, (_, at) => `21.t1/${at % 3 === 0 ? 'none' : 'a'}-${at % 6}`);
    for (let at = 0; at < (isWhole ? 240 : 48); at++) {
      const handle = names[(at * at) % names.length] ?? '';
      for (const [by, send] of Object.entries(READS)) {
        await send(proxy, handle, ['', '?type=URL', '?pretty'][at % 3]);
        ledger.add(handle, by, !handle.includes('none'));
      }
    }
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject(ledger.figures());
  });

  it('name each handle as its server does, in every letter case that tells handles apart', async () => {
    const UPSTREAMS = JSON.stringify([
      { prefixes: PREFIX, kind: 'template', url: 'https://a.test/{suffix}' },
    ]);
    const proxy = await startProxy({ ...ON, UPSTREAMS });
    for (let times = 0; times < 3; times++) await proxy.ask(`/${PREFIX}/a`);
    await proxy.ask(`/${PREFIX}/A`);
    const handles = [
      { handle: '21.T1/a', count: 3 },
      { handle: '21.T1/A', count: 1 },
    ];
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ topHandles: { handles } });
  });

  it('count HEAD and 304, but no authenticated read, write or failure', async () => {
    const upstream = mockUpstream(answerByHandle);
    const proxy = await startProxy(ON);
    const path = '/api/handles/21.T1/a';
    const { headers } = await proxy.ask(path);
    await proxy.ask(path, { method: 'HEAD' });
    await proxy.ask(path, { headers: { 'If-None-Match': String(headers.etag) } });
    await proxy.ask(path, { headers: { Authorization: 'Basic dTpw' } });
    await proxy.ask(path, { method: 'DELETE' });
    upstream.answers({ status: 500, body: { responseCode: 2 } });
    await proxy.ask('/api/handles/21.T1/b');
    await proxy.ask('/api/handles/21.T1/a');
    await expect
      .poll(() => reportOf(proxy, '21.t1'))
      .toMatchObject({ month: '2026-11', resolutions: 4, unknown: 0, byInterface: { record: 4 } });
  });

  it('attribute reads to robots by a traffic rule', async () => {
    mockUpstream(answerByHandle);
    const rules = [
      { name: 'robots', match: { userAgent: '*bot*' }, robot: true, shadow: true },
      { name: 'refused', match: { userAgent: 'RudeBot*' }, robot: true, answer: 403 },
    ];
    const proxy = await startProxy({ ...ON, TRAFFIC_RULES: JSON.stringify(rules) });
    for (const headers of [ROBOT, ROBOT, ROBOT, {}, { ...ROBOT, Authorization: 'Basic dTpw' }])
      await proxy.ask('/api/handles/21.T1/a', { headers });
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ resolutions: 4, robots: 3 });
  });

  const ROBOTS = { name: 'robots', match: { userAgent: '*bot*' }, robot: true };
  const REJECTED = { name: 'rejected', match: { userAgent: 'Rude*' }, robot: true, answer: 403 };

  it.each([
    ['hits to robots by a rule that does nothing else', [ROBOTS], [ROBOT, ROBOT, ROBOT, ROBOT]],
    [
      'no rejected read to a robot',
      [REJECTED, ROBOTS],
      [ROBOT, ROBOT, { 'User-Agent': 'RudeBot/1' }, ROBOT, ROBOT],
    ],
  ])('attribute %s', async (_what, rules, requests) => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy({ ...ON, TRAFFIC_RULES: JSON.stringify(rules) });
    for (const headers of requests) await proxy.ask('/api/handles/21.T1/a', { headers });
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ resolutions: 4, robots: 4 });
  });

  it('start again each month, and retain previous months', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy({ ...ON, REPORTS_FOLDER: newFolder() });
    await proxy.ask('/21.T1/a');
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ resolutions: 1 });
    proxy.pass(10 * 86_400_000);
    await proxy.ask('/21.T1/a');
    await proxy.ask('/21.T1/a');
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ month: '2026-12', resolutions: 2 });
    expect(await reportOf(proxy, PREFIX, '2026-11')).toMatchObject({ resolutions: 1 });
    expect(await reportOf(proxy, PREFIX, '2025-01')).toMatchObject({ resolutions: 0 });
  });

  it('without a folder retain the month before the current one, and no earlier month', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy(ON);
    for (const month of ['2026-11', '2026-12', '2027-01']) {
      await proxy.ask('/21.T1/a');
      await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ month, resolutions: 1 });
      proxy.pass(31 * 86_400_000);
    }
    for (const [month, resolutions] of [
      ['2026-12', 1],
      ['2026-11', 0],
    ] as const)
      expect(await reportOf(proxy, PREFIX, month)).toMatchObject({ resolutions });
  });

  it('are restored from their folder after a restart', async () => {
    mockUpstream(answerByHandle);
    const env = { ...ON, REPORTS_FOLDER: newFolder() };
    const ledger = new ReadLedger();
    for (let times = 0; times < 3; times++) {
      const proxy = await startProxy(env);
      // Since Node.js 24, U+2028 ends a line for `node:readline`.
      for (const handle of ['21.T1/a', '21.T1/a', `21.T1/none-\u2028${times}`]) {
        await proxy.ask(`/api/handles/${encodeURI(handle)}`);
        ledger.add(handle, 'record', !handle.includes('none'));
      }
      await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject(ledger.figures());
      await proxy.ask('/api/handles/21.T1/a');
      ledger.add('21.T1/a', 'record', true);
      await proxy.close();
    }
    const proxy = await startProxy(env);
    expect(await reportOf(proxy, PREFIX)).toMatchObject(ledger.figures());
  });

  it('start at zero when their file is damaged, and rename the file', async () => {
    mockUpstream(answerByHandle);
    const damaged = newFolder();
    writeFileSync(join(damaged, 'reports-2026-11.ndjson'), '{"prefix":');
    const proxy = await startProxy({ ...ON, REPORTS_FOLDER: damaged });
    await proxy.ask('/21.T1/a');
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ resolutions: 1 });
    expect(readdirSync(damaged).sort()).toEqual(['reports-2026-11.ndjson', 'reports-2026-11.ndjson.damaged']);
  });

  it('are deleted, with damaged files, when a month begins after fourteen others', async () => {
    mockUpstream(answerByHandle);
    const kept = newFolder();
    const ofMonth = (at: number): string =>
      `reports-${new Date(Date.UTC(2025, at)).toISOString().slice(0, 7)}.ndjson`;
    const others = [
      ...Array.from({ length: 14 }, (_, at) => ofMonth(8 + at)),
      'reports-2025.ndjson',
      'notes.txt',
    ];
    const old = [ofMonth(7), ofMonth(-61), `${ofMonth(7)}.damaged`];
    for (const name of [...others, ...old]) writeFileSync(join(kept, name), '');
    const proxy = await startProxy({ ...ON, REPORTS_FOLDER: kept });
    await proxy.ask('/21.T1/a');
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ month: '2026-11', resolutions: 1 });
    expect(readdirSync(kept).sort()).toEqual([...others, ofMonth(22)].sort());
    proxy.pass(31 * 86_400_000);
    await proxy.ask('/21.T1/a');
    await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ month: '2026-12', resolutions: 1 });
    expect(readdirSync(kept)).not.toContain(ofMonth(8));
    expect(readdirSync(kept)).toContain(ofMonth(9));
  });

  it('continue to count reads when their folder cannot be written', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy({ ...ON, REPORTS_FOLDER: '/nonexistent/folder' });
    for (const times of [1, 2]) {
      await proxy.ask('/21.T1/a');
      await expect.poll(() => reportOf(proxy, PREFIX)).toMatchObject({ resolutions: times });
    }
  });

  it('return 404 unless enabled, and 400 for an invalid prefix or month', async () => {
    const off = await startProxy();
    expect((await request(off.app.admin).get('/reports?prefix=21.T1').expect(404)).text).toContain(
      'REPORTS_DISABLED',
    );
    const { app } = await startProxy(ON);
    for (const query of ['', '?prefix=21.T1/a', '?prefix=21.T1&month=2026-13', '?prefix=a&prefix=b'])
      await request(app.admin).get(`/reports${query}`).expect(400);
  });
});
