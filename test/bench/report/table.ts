// Writes a table per workload, with this proxy's ratio to each peer.
import type { Machine } from '../machine.js';
import { OURS } from '../peers/peer.js';
import { COLUMNS, type Column, type Result, type Row, type Spread, ratioOf } from '../results.js';

export function writeMachine(machine: Machine): string {
  const { cpu, cores, memoryGiB, kernel, node, versions, driver, pinning, date } = machine;
  const others = Object.entries(versions).map(([name, version]) => `, ${name} ${version}`);
  return [
    `${date}: ${cpu}, ${cores} cores, ${memoryGiB} GiB, Linux ${kernel}`,
    `Node ${node}${others.join('')}; driven by ${driver}; ${pinning}`,
    '',
  ].join('\n');
}

/** Returns Markdown for the README. */
export function writeTable({ workload, about, rows }: Result): string {
  const columns = (Object.keys(COLUMNS) as Column[]).filter((column) =>
    rows.some(({ median }) => median[column] !== undefined),
  );
  const ours = rows.find(({ peer }) => peer === OURS);
  const head = [workload, ...columns.map((column) => COLUMNS[column]), ...(ours ? [RATIO] : [])];
  const body = rows.map((row) => [
    row.peer,
    ...columns.map((column) => writeFigure(row.median[column])),
    ...(ours ? [ratio(ours, row)] : []),
  ]);
  return `${about}\n\n${align([head, ...body])}\n`;
}

const RATIO = `${OURS} : it`;

const ratio = (ours: Row, other: Row): string => {
  const found = ours === other ? undefined : ratioOf(ours, other);
  return found === undefined ? '' : writeRatio(found);
};

/** Formats the median over the rounds, and the range. */
export function writeRatio({ median, least, most }: Spread): string {
  const range = least === most ? '' : ` (${least.toFixed(2)}–${most.toFixed(2)})`;
  return median.toFixed(2) + range;
}

export function writeFigure(figure: number | undefined): string {
  if (figure === undefined) return '';
  if (Number.isInteger(figure) || Math.abs(figure) >= 1000) return Math.round(figure).toLocaleString('en');
  return figure.toFixed(Math.abs(figure) >= 100 ? 0 : Math.abs(figure) >= 10 ? 1 : 2);
}

/** Formats a Markdown table; the first line is the header. */
export function align(lines: readonly string[][]): string {
  const [head = []] = lines;
  const widths = head.map((_, at) => Math.max(3, ...lines.map((cells) => (cells[at] ?? '').length)));
  const write = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(' | ')} |`;
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [write(head), write(rule), ...lines.slice(1).map(write)].join('\n');
}
