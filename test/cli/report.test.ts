// `report`: prints the resolutions of a prefix, or writes them to CSV files.
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { type Operated, startOperated } from '../support/operated-proxy.js';
import { reportOf } from '../support/reports.js';
import { newFolder } from '../support/folder.js';

const demo = await startDemoServer();
const ARGUMENTS = ['report', '--prefix', '21.T11998', '--month', '2026-11'];

async function startCounted(): Promise<Operated> {
  const proxy = await startOperated(demo.url, { REPORTS_ENABLED: 'true' });
  for (const handle of ['page', 'page', 'demo', 'none', 'bell%07'])
    await proxy.ask(`/api/handles/21.T11998/${handle}`);
  await expect.poll(() => reportOf(proxy, '21.T11998')).toMatchObject({ resolutions: 5 });
  return proxy;
}

const missingFolder = (): string => join(newFolder(), 'new');
const textOf = (folder: string, name: string): string => readFileSync(join(folder, name), 'utf8');

describe('report command', () => {
  it('prints totals, interfaces and lists, with control characters escaped', async () => {
    const { place } = await startCounted();
    expect(await cli(ARGUMENTS, place)).toEqual({
      code: 0,
      stderr: '',
      stdout: `Resolutions of 21.T11998 in 2026-11
  Total            5 reads
  Unknown handles  2 reads, 40 %
  Robots           0 reads, 0 %

Interfaces
  record  5 reads

Top handles
  21.T11998/PAGE  2 reads
  21.T11998/DEMO  1 read

Top unknown handles
  21.T11998/BELL\\u0007  1 read
  21.T11998/NONE        1 read
`,
    });
    const { stdout } = await cli([...ARGUMENTS, '--json'], place);
    expect(JSON.parse(stdout)).toMatchObject({ prefix: '21.T11998', resolutions: 5 });
  });

  it('writes CSV files to a new folder', async () => {
    const { place } = await startCounted();
    const folder = missingFolder();
    await cli([...ARGUMENTS, '--csv', folder], place);
    expect(readdirSync(folder).sort()).toEqual(['failed.csv', 'summary.csv', 'top.csv']);
    expect(textOf(folder, 'top.csv')).toBe(
      '"handle","count","max_error"\r\n"21.T11998/PAGE",2,0\r\n"21.T11998/DEMO",1,0\r\n',
    );
    expect(textOf(folder, 'failed.csv')).toContain('"21.T11998/NONE",1,0\r\n');
    expect(textOf(folder, 'summary.csv').split('\r\n')).toContain('"21.T11998","2026-11","resolutions",5');
  });

  it.each(['=HYPERLINK("https://example.org","a")', '+1/a', '-1/a', '@SUM(1)/a', '\t=1/a', '＝1/a'])(
    'writes the handle %j as a text that no spreadsheet executes',
    async (handle) => {
      const list = { exact: true, maxError: 0, handles: [{ handle, count: 1 }] };
      const totals = { resolutions: 2, unknown: 1, robots: 0, byInterface: { record: 2 } };
      const report = { prefix: handle, month: '2026-11', ...totals, topHandles: list, topUnknown: list };
      const admin = createServer((_req, res) => res.end(JSON.stringify(report))).listen(0, '127.0.0.1');
      onTestFinished(() => void admin.close());
      await once(admin, 'listening');
      const folder = missingFolder();
      const { port } = admin.address() as AddressInfo;
      await cli([...ARGUMENTS, '--csv', folder], { ADMIN_URL: `http://127.0.0.1:${port}` });
      const cell = `"'${handle.replaceAll('"', '""')}"`;
      expect(textOf(folder, 'failed.csv')).toBe(`"handle","count","max_error"\r\n${cell},1,0\r\n`);
      expect(textOf(folder, 'summary.csv')).toContain(`\r\n${cell},"2026-11","unknown",1\r\n`);
    },
  );

  it('fails while reports are disabled', async () => {
    const { place } = await startOperated(demo.url);
    expect(await cli(ARGUMENTS, place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('REPORTS_DISABLED') as string,
    });
  });
});
