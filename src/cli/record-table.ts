// A record as a table for a person or as lines for a program, and what the cache holds of it.
import { printable } from './printable.js';
import { type Answered, textOfData } from './record.js';

/** The record interface leaves `ttl` out where it is a day. */
const DEFAULT_TTL_SECONDS = 86_400;

const HEAD = ['index', 'type', 'ttl', 'data'] as const;

/** `columns` is the width of the terminal. Text is shown whole, to be copied; structures are cut at its edge. */
export function recordTable({ handle, values }: Answered, columns: number): string {
  const rows = values.map((value) => {
    const { text, isText } = textOfData(value);
    const cells = [String(value.index), value.type, String(value.ttl ?? DEFAULT_TTL_SECONDS)];
    return { cells: cells.map(printable), data: printable(text), isText };
  });
  const widths = [0, 1, 2].map((at) =>
    Math.max(HEAD[at]?.length ?? 0, ...rows.map(({ cells }) => cells[at]?.length ?? 0)),
  );
  const line = ([index = '', type = '', ttl = '']: readonly string[], data: string): string =>
    [index.padStart(widths[0] ?? 0), type.padEnd(widths[1] ?? 0), ttl.padStart(widths[2] ?? 0), data].join(
      '  ',
    );
  const lines = rows.map(({ cells, data, isText }) => {
    const whole = line(cells, data);
    return isText || whole.length <= columns ? whole : `${whole.slice(0, Math.max(0, columns - 1))}…`;
  });
  return [printable(handle), line(HEAD, 'data'), ...lines].join('\n');
}

/** A line for each value: index, type, ttl and data with tabs between. */
export const recordLines = ({ values }: Answered): string =>
  values
    .map((value) =>
      [value.index, value.type, value.ttl ?? DEFAULT_TTL_SECONDS, textOfData(value).text]
        .map((cell) => printable(String(cell)))
        .join('\t'),
    )
    .join('\n');

/** A copy in the cache, as `GET /cache` tells of it. */
export interface Copy {
  tier: 'memory' | 'redis';
  pid?: number;
  kind: string;
  use: string;
  ageSeconds: number;
  lifeLeftSeconds: number;
  standInLeftSeconds: number;
  bytes: number;
  hits?: number;
}

export function copyLine({ tier, pid, kind, use, hits, ...times }: Copy): string {
  const where = pid === undefined ? tier : `${tier} (process ${pid})`;
  const { ageSeconds, lifeLeftSeconds, standInLeftSeconds, bytes } = times;
  return [
    `${where.padEnd(24)} ${kind}, ${use}`,
    `${ageSeconds} s old`,
    `${lifeLeftSeconds} s left (${standInLeftSeconds} s as a stand-in)`,
    ...(hits === undefined ? [] : [`${hits} hits`]),
    `${bytes} bytes`,
  ].join(', ');
}
