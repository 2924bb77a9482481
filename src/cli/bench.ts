// `bench`: a short, bounded load on a running proxy, and how it did.
import { isLoopback } from '../config/loopback.js';
import { handleToPath } from '../handle/handle.js';
import { benchReport, benchTable } from './bench-report.js';
import { EXIT, Failure } from './exit.js';
import { readHandles } from './handle-list.js';
import { untilInterrupted } from './interrupt.js';
import { type Load, runLoad } from './load.js';

export interface BenchOptions {
  proxy: string;
  file?: string;
  duration: number;
  requests: number;
  connections: number;
  rate: number;
  remote?: boolean;
  json?: boolean;
}

export async function bench(given: string[], options: BenchOptions): Promise<void> {
  const { proxy, file, duration, json = false } = options;
  refuseForeign(options);
  const handles = [...given, ...(file === undefined ? [] : await readHandles(file))];
  if (handles.length === 0) throw new Failure('Give handles to ask for, or a --file of them.', EXIT.usage);
  const { signal, release } = untilInterrupted();
  const load = await runLoad({
    ...options,
    base: proxy,
    paths: handles.map((handle) => `/api/handles/${handleToPath(handle)}`),
    durationMs: duration * 1000,
    signal,
  });
  release();
  const report = benchReport(load);
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${benchTable(report)}\n`);
  const failures = failuresOf(load);
  if (failures > 0) throw new Failure(`${failures} requests failed`);
}

/** Nobody should find a public service under load because of a variable that was still set. */
function refuseForeign({ proxy, remote = false }: BenchOptions): void {
  if (remote || isLoopback(new URL(proxy).hostname)) return;
  throw new Failure(
    `${proxy} is not on this machine. If you may put it under load, say so with --remote.`,
    EXIT.usage,
  );
}

/** That there is no such handle is a proper answer. */
function failuresOf({ statuses, unanswered }: Load): number {
  const bad = [...statuses].filter(([status]) => status !== 404 && (status < 200 || status > 299));
  return bad.reduce((sum, [, count]) => sum + count, unanswered);
}
