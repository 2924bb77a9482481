// `warm`: asks the proxy for each handle of a list, shows how far it is, and goes on where it was broken off.
import { handleToPath } from '../handle/handle.js';
import { reasonOf } from './call.js';
import { Failure } from './exit.js';
import { type ListSource, listHandles } from './handle-list.js';
import { untilInterrupted } from './interrupt.js';
import { createPace } from './pace.js';
import { printable } from './printable.js';
import { createProgress } from './progress.js';
import { createWarmState } from './warm-state.js';

export interface WarmOptions extends ListSource {
  concurrency: number;
  rate: number;
  state?: string;
}

interface Tally {
  warmed: number;
  notFound: number;
  skipped: number;
  failures: { handle: string; why: string }[];
}

const MOST_TOLD = 10;

export async function warm(file: string | undefined, options: WarmOptions): Promise<void> {
  const handles = await listHandles(file, options);
  const state = createWarmState(options.state);
  const todo = handles.filter((handle) => !state.isDone(handle));
  const tally: Tally = { warmed: 0, notFound: 0, skipped: handles.length - todo.length, failures: [] };
  const progress = createProgress(todo.length);
  const { signal, release } = untilInterrupted();
  const queue = todo[Symbol.iterator]();
  const pace = createPace(options.rate, signal);
  const work = async (): Promise<void> => {
    for (;;) {
      await pace();
      const next = signal.aborted ? undefined : queue.next();
      if (next === undefined || next.done === true) return;
      if (await warmOne(next.value, options.proxy, tally)) state.done(next.value);
      progress.step();
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, work));
  release();
  progress.stop();
  state.save();
  tell(tally, todo.length);
  if (signal.aborted)
    throw new Failure('broken off; the same command goes on from here when --state is given');
  if (tally.failures.length > 0) throw new Failure(`${tally.failures.length} handles failed`);
}

/** True when the proxy has an answer to keep. */
async function warmOne(handle: string, proxy: string, tally: Tally): Promise<boolean> {
  try {
    const answer = await fetch(`${proxy}/api/handles/${handleToPath(handle)}`);
    await answer.arrayBuffer();
    if (answer.ok) tally.warmed++;
    else if (answer.status === 404) tally.notFound++;
    else tally.failures.push({ handle, why: String(answer.status) });
    return answer.ok || answer.status === 404;
  } catch (error) {
    tally.failures.push({ handle, why: reasonOf(error) });
    return false;
  }
}

function tell({ warmed, notFound, skipped, failures }: Tally, total: number): void {
  for (const { handle, why } of failures.slice(0, MOST_TOLD))
    process.stderr.write(`${printable(handle)}: ${why}\n`);
  process.stdout.write(
    `${warmed} warmed, ${notFound} not found, ${failures.length} failed, ${skipped} done before; ${total} to do\n`,
  );
}
