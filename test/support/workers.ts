// The processes behind one port.
import { ask } from './ask.js';
import type { BuiltProxy } from './built-proxy.js';

/** The process ids of the workers that answer the primary. */
export async function workersOf(proxy: BuiltProxy): Promise<number[]> {
  const stats = JSON.parse((await ask(proxy.adminUrl, '/stats')).text) as { workers: { pid: number }[] };
  return stats.workers.map(({ pid }) => pid);
}
