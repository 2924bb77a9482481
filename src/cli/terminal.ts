// Output for a terminal: escaped text, two-column tables and the progress bar.
import cliProgress, { type Options, type Params, SingleBar } from 'cli-progress';

/**
 * Handles and values come from anybody. Control characters could move the cursor or run terminal commands, and
 * direction marks could disguise a text, so both are written as JSON escapes.
 */
export const printable = (text: string): string =>
  text.replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Keeps line breaks and indentation. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** `1 record`, `2 records`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

export type Rows = readonly (readonly [name: string, value: string])[];

/** A heading with a table below. */
export function section(heading: string, rows: Rows): string {
  const table = rows.length === 0 ? 'none' : nameTable(rows);
  return [heading, ...table.split('\n').map((line) => `  ${line}`)].join('\n');
}

/** Names and values in two columns. */
export const nameTable = (rows: Rows): string => {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
};

/** A bar on a terminal; elsewhere a line every two seconds. */
export function startProgress(total: number): SingleBar {
  const { isTTY } = process.stderr;
  const bar = new SingleBar({
    format: progressLine,
    hideCursor: true,
    etaBuffer: 500,
    noTTYOutput: true,
    notTTYSchedule: 2000,
    // Elsewhere this only suppresses an empty line at the end.
    clearOnComplete: !isTTY,
  });
  bar.start(total, 0);
  return bar;
}

function progressLine(options: Options, { progress, value, total, eta, startTime }: Params): string {
  const bar = process.stderr.isTTY
    ? `${cliProgress.Format.BarFormat(progress, options)} ${Math.floor(progress * 100)} % | `
    : '';
  const rate = Math.round((value * 1000) / Math.max(1, Date.now() - startTime));
  const left = Number.isFinite(eta) ? `, ${eta} s left` : '';
  return `${bar}${value} of ${total}, ${rate}/s${left}`;
}

export interface Counter {
  add: (more: number) => void;
  stop: () => void;
}

/** Progress without a known end: a line every two seconds. */
export function startCounter(noun: string): Counter {
  const startedAt = Date.now();
  let count = 0;
  const timer = setInterval(() => {
    const rate = Math.round((count * 1000) / Math.max(1, Date.now() - startedAt));
    process.stderr.write(`${countOf(count, noun)}, ${rate}/s\n`);
  }, 2000).unref();
  return {
    add(more) {
      count += more;
    },
    stop() {
      clearInterval(timer);
    },
  };
}
