// Counts work: how often blocks of our source are run. V8 counts them exactly, so that the figure depends on no machine.
// Import it first, and in a test file with a process of its own: what is compiled before is not counted by block.
import { Session } from 'node:inspector/promises';

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Since the last call. What is inside of a builtin (`indexOf`, a regular expression) counts as one. */
async function takeBlocks(): Promise<number> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ url }) => url.includes('/src/') && !url.includes('node_modules'))
    .flatMap(({ functions }) => functions)
    .flatMap(({ ranges }) => ranges)
    .reduce((sum, { count }) => sum + count, 0);
}

/** Whatever else runs in src meanwhile is counted too: call it when nothing else does. */
export async function countWork<T>(work: () => Promise<T>): Promise<{ blocks: number; value: T }> {
  await takeBlocks();
  const value = await work();
  return { blocks: await takeBlocks(), value };
}
