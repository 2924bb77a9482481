// Output for a terminal: escaped text, two-column tables and progress.

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

interface Counter {
  add: (more: number) => void;
  stop: () => void;
}

/** A line every two seconds, with the time left of what has a `total`. */
export function startCounter(noun: string, total?: number): Counter {
  const startedAt = Date.now();
  let count = 0;
  const timer = setInterval(() => {
    const rate = (count * 1000) / Math.max(1, Date.now() - startedAt);
    const counted = total === undefined ? countOf(count, noun) : `${count} of ${countOf(total, noun)}`;
    const left = total === undefined || count === 0 ? '' : `, ${Math.ceil((total - count) / rate)} s left`;
    process.stderr.write(`${counted}, ${Math.round(rate)}/s${left}\n`);
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
