// The command `report`: the resolutions of a prefix in a month, as text, JSON or CSV files.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ResolutionReport } from '../plugins/reports/plugin.js';
import { type AdminOptions, askAdmin } from './client.js';
import { printableText } from '../handle/handle.js';
import { type Rows, countText, print, printSection } from './terminal.js';

interface ReportOptions extends AdminOptions {
  prefix: string;
  month?: string;
  /** Folder of the CSV files. */
  csv?: string;
  json?: boolean;
}

/** Prints the report, or writes it to CSV files. */
export async function report({ prefix, month, csv, json, ...options }: ReportOptions): Promise<void> {
  const query = new URLSearchParams({ prefix, ...(month !== undefined && { month }) });
  const found = (await askAdmin(options, `/reports?${query.toString()}`)) as ResolutionReport;
  if (csv === undefined) {
    print(json === true ? JSON.stringify(found) : reportText(found));
    return;
  }
  await mkdir(csv, { recursive: true });
  for (const [name, rows] of Object.entries(csvFiles(found))) await writeFile(join(csv, name), csvText(rows));
  print(`Written to ${printableText(csv)}: summary.csv, top.csv, failed.csv`);
}

/** Maximum handles per list in the text report; JSON and CSV contain all of them. */
const MAX_SHOWN = 10;

function reportText({ topHandles, topUnknown, ...totals }: ResolutionReport): string {
  const { prefix, month, resolutions, byInterface } = totals;
  return [
    printSection(`Resolutions of ${printableText(prefix)} in ${month}`, [
      ['Total', countText(resolutions, 'read')],
      ['Unknown handles', `${countText(totals.unknown, 'read')}, ${shareOf(totals.unknown, resolutions)}`],
      ['Robots', `${countText(totals.robots, 'read')}, ${shareOf(totals.robots, resolutions)}`],
    ]),
    printSection(
      'Interfaces',
      Object.entries(byInterface).map(([name, count]) => [name, countText(count, 'read')]),
    ),
    printSection(`Top handles${precisionOf(topHandles)}`, rowsOf(topHandles)),
    printSection(`Top unknown handles${precisionOf(topUnknown)}`, rowsOf(topUnknown)),
  ].join('\n\n');
}

type ListedHandles = ResolutionReport['topHandles'];

const shareOf = (part: number, all: number): string =>
  all === 0 ? '–' : `${Math.round((1000 * part) / all) / 10} %`;

const precisionOf = ({ exact, maxError }: ListedHandles): string =>
  exact ? '' : ` (not exact: counts differ by at most ${maxError})`;

const rowsOf = ({ handles }: ListedHandles): Rows =>
  handles
    .slice(0, MAX_SHOWN)
    .map(({ handle, count }) => [printableText(handle), countText(count, 'read')] as const);

type CsvRows = readonly (readonly (string | number)[])[];

function csvFiles({ topHandles, topUnknown, ...totals }: ResolutionReport): Record<string, CsvRows> {
  const { prefix, month, byInterface, ...counts } = totals;
  const listed = ({ handles, maxError }: ListedHandles): CsvRows => [
    ['handle', 'count', 'max_error'],
    ...handles.map(({ handle, count }) => [handle, count, maxError]),
  ];
  const figures = [...Object.entries(counts), ...Object.entries(byInterface)];
  const summary = figures.map(([figure, count]) => [prefix, month, figure, count]);
  return {
    'summary.csv': [['prefix', 'month', 'figure', 'count'], ...summary],
    'top.csv': listed(topHandles),
    'failed.csv': listed(topUnknown),
  };
}

/** Formats rows as RFC 4180 describes. */
export const csvText = (rows: CsvRows): string =>
  rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');

/**
 * Formats a cell. Anyone can request a handle that a spreadsheet would execute as a formula, so a text that
 * begins like one gets an apostrophe (OWASP, CSV Injection).
 */
function csvCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell);
  const inert = /^[=+\-@\t\r\n＝＋－＠]/.test(cell) ? `'${cell}` : cell;
  return `"${inert.replaceAll('"', '""')}"`;
}
