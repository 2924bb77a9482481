// Assigns the available cores: the server under test has one to itself.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export const isInstalled = (program: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/** Numbers of the cores this process may use; in a container they can be any. */
function allowedCores(): string[] {
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => String(first + at));
  });
}

const [first = '0', second = first, ...others] = allowedCores();

export const CAN_PIN = first !== second && isInstalled('taskset');

/** With two cores driver and upstream share one; with three or more each has its own. */
export const CORES = {
  server: first,
  driver: second,
  upstream: others[0] ?? second,
};

export type Place = keyof typeof CORES;

export function pinned(place: Place, command: readonly string[]): string[] {
  return CAN_PIN ? ['taskset', '-c', CORES[place], ...command] : [...command];
}

/** This process drives some workloads itself, so it avoids the server's core. */
export function pinThisProcess(): void {
  if (CAN_PIN) spawnSync('taskset', ['-a', '-c', '-p', CORES.driver, String(process.pid)]);
}
