// Resolution reports in files: full disks, unreadable and damaged files, and steps of the wall clock.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { FileReportStore } from '../../src/plugins/reports/file-store.js';
import { testContext } from '../support/context.js';
import { createManualClock } from '../support/manual-clock.js';

const PREFIX = '21.T1';
const fileOf = (month: string): string => `reports-${month}.ndjson`;
const rowOf = (record: number): string => {
  const none = { names: [], maxError: 0 };
  return `${JSON.stringify({ prefix: PREFIX, totals: { record }, handles: none, unknown: none })}\n`;
};

function open(folder = mkdtempSync(join(tmpdir(), 'report-files-'))) {
  const clock = createManualClock();
  const context = testContext({ clock });
  const start = () => new FileReportStore({ enabled: true, folder, maxPrefixes: 10 }, context);
  const store = start();
  const none = { names: [], maxError: 0 };
  return {
    ...{ clock, folder, store, start },
    lines: context.lines,
    pathOf: (month: string): string => join(folder, fileOf(month)),
    count: (month: string): Promise<boolean> =>
      store.add({ month, prefix: PREFIX, totals: { record: 1 }, handles: none, unknown: none }),
    totals: async (month: string, from = store) => (await from.read(PREFIX, month))?.totals,
  };
}

describe('files of reports', () => {
  it('receive the counts of a month that could not be written when the next month began', async () => {
    const { store, start, count, totals, pathOf } = open();
    // A folder in place of the temporary file fails a write like a full disk.
    mkdirSync(join(`${pathOf('2026-11')}.tmp`, 'full'), { recursive: true });
    for (const month of ['2026-11', '2026-12']) {
      expect(await count(month)).toBe(true);
      await store.save();
      expect(await totals(month)).toEqual({ record: 1 });
    }
    expect(await totals('2026-11')).toEqual({ record: 1 });
    expect([existsSync(pathOf('2026-11')), existsSync(pathOf('2026-12'))]).toEqual([false, true]);
    rmSync(`${pathOf('2026-11')}.tmp`, { recursive: true });
    await store.save();
    for (const month of ['2026-11', '2026-12']) expect(await totals(month, start())).toEqual({ record: 1 });
  });

  test.each([
    {
      failing: 'a link to itself (ELOOP)',
      spoil: (path: string) => {
        symlinkSync(path, path);
      },
      mend: unlinkSync,
    },
    { failing: 'a folder (EISDIR)', spoil: mkdirSync, mend: rmdirSync },
  ])('are not renamed, and counted later, if the file is $failing', async ({ spoil, mend }) => {
    const { folder, lines, store, count, totals, pathOf } = open();
    spoil(pathOf('2026-11'));
    expect(await count('2026-11')).toBe(false);
    const reason = expect.stringContaining(pathOf('2026-11')) as string;
    expect(lines).toMatchObject([{ msg: 'reports not read', reason }]);
    expect(await totals('2026-11')).toBeUndefined();
    await store.save();
    expect(readdirSync(folder)).toEqual([fileOf('2026-11')]);
    mend(pathOf('2026-11'));
    writeFileSync(pathOf('2026-11'), rowOf(5));
    expect(await count('2026-11')).toBe(true);
    expect(await totals('2026-11')).toEqual({ record: 6 });
  });

  it('are not renamed, and no report, when the damaged file of an earlier month is read', async () => {
    const { folder, lines, count, totals, pathOf } = open();
    writeFileSync(pathOf('2026-10'), `${rowOf(5)}{"prefix":`);
    await count('2026-11');
    for (const times of [1, 2]) expect(await totals('2026-10'), String(times)).toBeUndefined();
    expect(readdirSync(folder)).toEqual([fileOf('2026-10')]);
    const reason = expect.stringContaining(pathOf('2026-10')) as string;
    expect(lines).toMatchObject([{ msg: 'reports damaged', reason }]);
  });

  it('are not overwritten if a damaged file cannot be renamed', async () => {
    const { store, count, pathOf } = open();
    writeFileSync(pathOf('2026-11'), `${rowOf(5)}{"prefix":`);
    mkdirSync(join(`${pathOf('2026-11')}.damaged`, 'full'), { recursive: true });
    expect(await count('2026-11')).toBe(false);
    await store.save();
    rmSync(`${pathOf('2026-11')}.damaged`, { recursive: true });
    expect(await count('2026-11')).toBe(true);
    expect(existsSync(`${pathOf('2026-11')}.damaged`)).toBe(true);
  });

  it.each(['', '.tmp'])('block no thread if a named pipe has the name of a file (%j)', async (end) => {
    const { store, start, count, totals, pathOf } = open();
    execFileSync('mkfifo', [`${pathOf('2026-11')}${end}`]);
    expect(await count('2026-11')).toBe(true);
    await store.save();
    expect(await totals('2026-11', start())).toEqual({ record: 1 });
  });

  it('remain when the wall clock is set years ahead and back', async () => {
    const { folder, store, count } = open();
    const names = Array.from({ length: 14 }, (_, at) =>
      fileOf(new Date(Date.UTC(2025, 8 + at)).toISOString().slice(0, 7)),
    );
    for (const name of names) writeFileSync(join(folder, name), '');
    for (const month of ['2040-01', '1970-01', '2026-10']) {
      await count(month);
      await store.save();
    }
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(names));
  });

  it('fail with a line in the log at most once a minute, which names a remedy', async () => {
    const { clock, lines, store, count, totals } = open('/nonexistent/folder');
    const written = () => lines.filter(({ msg }) => msg === 'reports not written');
    await count('2026-11');
    for (let minute = 1; minute <= 2; minute++) {
      for (let times = 0; times < 3; times++) {
        await store.save();
        await totals('2026-10');
      }
      expect(written()).toHaveLength(minute);
      await clock.pass(60_000);
    }
    expect(written()[1]).toMatchObject({
      level: 'warn',
      count: 3,
      remedy: expect.stringContaining('reports.folder') as string,
    });
  });
});
