// `warm`: requests each handle of a list through the proxy so that it is cached. With a state file only what is due.
import { handleToPath } from '../handle/handle.js';
import { reasonOf } from './client.js';
import { Failure } from './failure.js';
import { type ListSource, listHandles } from './handle-list.js';
import { sendPaced } from './paced-requests.js';
import { openState } from './warm-state.js';
import { countOf, printable, startCounter } from './terminal.js';

export interface WarmOptions extends ListSource {
  concurrency: number;
  rate: number;
  state?: string;
}

interface WarmSummary {
  warmed: number;
  notFound: number;
  skipped: number;
  failures: { handle: string; reason: string }[];
}

const MAX_PRINTED_FAILURES = 10;

export async function warm(file: string | undefined, options: WarmOptions): Promise<void> {
  const state = openState(options.state);
  const handles = await listHandles(file, options);
  const todo = handles.filter((handle) => state.isDue(handle));
  const queue = todo.values();
  const summary: WarmSummary = {
    warmed: 0,
    notFound: 0,
    skipped: handles.length - todo.length,
    failures: [],
  };
  const progress = startCounter('handle', todo.length);
  const isInterrupted = await sendPaced({
    concurrency: options.concurrency,
    rate: options.rate,
    next: () => queue.next().value,
    async send(handle) {
      const dueAt = await warmOne(handle, options.proxy, summary);
      if (dueAt !== undefined) state.markDone(handle, dueAt);
      progress.add(1);
    },
  });
  progress.stop();
  state.save();
  printSummary(summary, todo.length);
  if (isInterrupted) throw new Failure('interrupted; run the same command to resume if --state was given');
  if (summary.failures.length > 0) throw new Failure(`${countOf(summary.failures.length, 'handle')} failed`);
}

/** When the handle is due again; undefined when the proxy did not respond with something it caches. */
async function warmOne(handle: string, proxy: string, summary: WarmSummary): Promise<number | undefined> {
  try {
    // RFC 9218 §4.1: a background task.
    const headers = { Priority: 'u=7' };
    const response = await fetch(`${proxy}/api/handles/${handleToPath(handle)}`, { headers });
    await response.arrayBuffer();
    if (response.ok) summary.warmed++;
    else if (response.status === 404) summary.notFound++;
    else summary.failures.push({ handle, reason: String(response.status) });
    if (!response.ok && response.status !== 404) return undefined;
    return Date.now() + freshSeconds(response.headers) * 1000;
  } catch (error) {
    summary.failures.push({ handle, reason: reasonOf(error) });
    return undefined;
  }
}

/** What is not fresh was answered from an old entry, and is due at once. */
const freshSeconds = (headers: Headers): number =>
  Math.max(0, Number(OUR_TTL.exec(headers.get('Cache-Status') ?? '')?.[1] ?? 0));

/** RFC 9211 §2: caches in front of the proxy add members of their own. */
const OUR_TTL = /(?:^|,)\s*handle-resolver-proxy;[^,]*\bttl=(-?\d+)/;

/** Failed handles are left: the next run requests them again. */
function printSummary({ warmed, notFound, skipped, failures }: WarmSummary, todo: number): void {
  const left = todo - warmed - notFound;
  for (const { handle, reason } of failures.slice(0, MAX_PRINTED_FAILURES))
    process.stderr.write(`${printable(handle)}: ${reason}\n`);
  process.stdout.write(
    `${warmed} warmed, ${notFound} not found, ${failures.length} failed, ${skipped} not due; ${left} left\n`,
  );
}
