// `report`: prints the resolutions of a prefix, or writes them to CSV files.
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { type Operated, startOperated } from '../support/operated-proxy.js';
import { reportOf } from '../support/reports.js';

const demo = await startDemoServer();
const FORMULA = '=HYPERLINK("https://example.org","a,b")';
const ARGUMENTS = ['report', '--prefix', '21.T11998', '--month', '2026-11'];

async function startCounted(): Promise<Operated> {
  const proxy = await startOperated(demo.url, { REPORTS_ENABLED: 'true' });
  for (const handle of ['page', 'page', 'demo', 'none', 'bell%07'])
    await proxy.ask(`/api/handles/21.T11998/${handle}`);
  await proxy.ask(`/api/handles/${encodeURIComponent(FORMULA)}`);
  await expect.poll(() => reportOf(proxy, '21.T11998')).toMatchObject({ resolutions: 5 });
  return proxy;
}

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

  it('writes CSV files in which no handle is a formula', async () => {
    const { place } = await startCounted();
    const folder = join(mkdtempSync(join(tmpdir(), 'csv-')), 'new');
    await cli([...ARGUMENTS, '--csv', folder], place);
    expect(readdirSync(folder).sort()).toEqual(['failed.csv', 'summary.csv', 'top.csv']);
    const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8');
    expect(textOf('top.csv')).toBe(
      '"handle","count","max_error"\r\n"21.T11998/PAGE",2,0\r\n"21.T11998/DEMO",1,0\r\n',
    );
    expect(textOf('summary.csv').split('\r\n')).toContain('"21.T11998","2026-11","resolutions",5');
    expect(textOf('failed.csv')).toContain('"21.T11998/NONE",1,0\r\n');
    // The text before the first slash is the prefix.
    const prefix = FORMULA.slice(0, FORMULA.indexOf('/'));
    await cli(['report', '--prefix', prefix, '--csv', folder], place);
    expect(textOf('failed.csv')).toBe(
      `"handle","count","max_error"\r\n"'${FORMULA.toUpperCase().replaceAll('"', '""')}",1,0\r\n`,
    );
    expect(textOf('summary.csv')).toContain(`"'=HYPERLINK(""HTTPS:","2026-11","unknown",1`);
  });

  it('fails while reports are disabled', async () => {
    const { place } = await startOperated(demo.url);
    expect(await cli(ARGUMENTS, place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('REPORTS_DISABLED') as string,
    });
  });
});
