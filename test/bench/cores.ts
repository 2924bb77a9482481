// Assigns the available cores, one of them exclusively to the server under test.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export const isInstalled = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/** Returns the numbers of the cores that this process may use, which are arbitrary in a container. */
function allowedCores(): string[] {
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => String(first + at));
  });
}

const [first = '0', second = first, ...others] = allowedCores();

export const CAN_PIN = first !== second && isInstalled('taskset');

/** Core assignment. With two cores, driver and upstream share one. */
export const CORES = {
  server: first,
  driver: second,
  upstream: others[0] ?? second,
};

export type Place = keyof typeof CORES;

export function pinned(place: Place, command: readonly string[]): string[] {
  return CAN_PIN ? ['taskset', '-c', CORES[place], ...command] : [...command];
}

/** Keeps this process off the server's core, because it drives some workloads itself. */
export function pinThisProcess(): void {
  if (CAN_PIN) spawnSync('taskset', ['-a', '-c', '-p', CORES.driver, String(process.pid)]);
}
