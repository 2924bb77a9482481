// `purge`: invalidates handles in every instance.
import { type AdminOptions, askAdmin } from './client.js';
import { EXIT, Failure } from './failure.js';
import { readHandleName } from './handle-name.js';
import { countOf, printable } from './terminal.js';

export interface PurgeOptions extends AdminOptions {
  prefix?: string;
  all?: boolean;
  soft?: boolean;
  json?: boolean;
}

/** The response to `POST /purge`. */
interface PurgeReport {
  soft: boolean;
  /** False while Redis is unavailable. */
  shared: boolean;
}

export async function purge(given: string[], options: PurgeOptions): Promise<void> {
  const { prefix, all = false, soft = false, json = false } = options;
  const handles = given.map(readHandleName);
  const selections = [
    ...(handles.length > 0 ? [{ selected: { handles }, text: nameOf(handles) }] : []),
    ...(prefix === undefined ? [] : [{ selected: { prefix }, text: `all handles under ${prefix}` }]),
    ...(all ? [{ selected: { all }, text: 'all handles' }] : []),
  ];
  const [selection, ...others] = selections;
  if (selection === undefined || others.length > 0)
    throw new Failure('Give either handles, --prefix or --all.', EXIT.usage);
  const report = await askAdmin(options, '/purge', { ...selection.selected, soft });
  const text = json ? JSON.stringify(report) : describePurge(report as PurgeReport, selection.text);
  process.stdout.write(`${text}\n`);
}

const nameOf = (handles: readonly string[]): string =>
  handles.length === 1 ? String(handles[0]) : countOf(handles.length, 'handle');

function describePurge({ soft, shared }: PurgeReport, selected: string): string {
  const done = soft ? 'Marked as stale' : 'Purged';
  const reach = shared
    ? 'in every instance'
    : 'in this instance; Redis is unavailable, so other instances follow when it is back';
  return `${done} ${reach}: ${printable(selected)}`;
}
