// Output forms of a record (table, lines) and of its cache entries.
import type { HandleValue } from '../handle/value.js';
import { printable } from './terminal.js';

export interface RecordResponse {
  handle: string;
  values: HandleValue[];
}

/** Reads a response of the record interface. Undefined for errors and everything else. */
export function readRecord(text: string): RecordResponse | undefined {
  const { handle, values } = parsed(text);
  if (typeof handle !== 'string' || !Array.isArray(values) || !values.every(isValue)) return undefined;
  return { handle, values };
}

function parsed(text: string): { handle?: unknown; values?: unknown } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

const isValue = (value: Partial<HandleValue> | null): value is HandleValue =>
  typeof value?.index === 'number' && typeof value.type === 'string';

/** Strings as they are, other data as JSON. */
function textOfData({ data }: HandleValue): { text: string; isText: boolean } {
  if (typeof data === 'string') return { text: data, isText: true };
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  if (format === 'string' && typeof value === 'string') return { text: value, isText: true };
  return { text: JSON.stringify(value ?? data ?? null), isText: false };
}

/** The record interface omits `ttl` when it is a day. */
const DEFAULT_TTL_SECONDS = 86_400;

const cellsOf = ({ index, type, ttl = DEFAULT_TTL_SECONDS }: HandleValue): string[] =>
  [String(index), type, String(ttl)].map(printable);

const HEAD = ['index', 'type', 'ttl'];

/** Text is shown whole so that it can be copied; structured data is cut at the width of the terminal. */
export function recordTable({ handle, values }: RecordResponse, columns: number): string {
  const rows = values.map((value) => ({ cells: cellsOf(value), ...textOfData(value) }));
  const widths = HEAD.map((name, at) =>
    Math.max(name.length, ...rows.map(({ cells }) => cells[at]?.length ?? 0)),
  );
  const line = (cells: readonly string[], data: string): string => {
    const padded = widths.map((width, at) =>
      at === 1 ? (cells[at] ?? '').padEnd(width) : (cells[at] ?? '').padStart(width),
    );
    return [...padded, data].join('  ');
  };
  const lines = rows.map(({ cells, text, isText }) => {
    const whole = line(cells, printable(text));
    return isText || whole.length <= columns ? whole : `${whole.slice(0, Math.max(0, columns - 1))}…`;
  });
  return [printable(handle), line(HEAD, 'data'), ...lines].join('\n');
}

/** Index, type, ttl and data, separated by tabs. */
export const valueLine = (value: HandleValue): string =>
  [...cellsOf(value), printable(textOfData(value).text)].join('\t');

export const recordLines = ({ values }: RecordResponse): string => values.map(valueLine).join('\n');

/** A cache entry as `GET /cache` of the admin listener reports it. */
export interface CacheEntryReport {
  tier: 'memory' | 'redis';
  kind: string;
  use: string;
  ageSeconds: number;
  lifeLeftSeconds: number;
  standInLeftSeconds: number;
  bytes: number;
  hits?: number;
}

export function cacheEntryLine({ tier, kind, use, hits, ...times }: CacheEntryReport): string {
  const { ageSeconds, lifeLeftSeconds, standInLeftSeconds, bytes } = times;
  return [
    `${tier.padEnd(6)} ${kind}, ${use}`,
    `age ${ageSeconds} s`,
    `TTL left ${lifeLeftSeconds} s (stale-if-error ${standInLeftSeconds} s)`,
    ...(hits === undefined ? [] : [`${hits} hits`]),
    `${bytes} bytes`,
  ].join(', ');
}
