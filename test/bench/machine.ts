// Describes the machine that runs the measurements.
import { spawnSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { CAN_PIN, CORES } from './cores.js';
import { DRIVER } from './drive/drive.js';

export interface Machine {
  date: string;
  cpu: string;
  cores: number;
  memoryGiB: number;
  kernel: string;
  node: string;
  /** Program versions, omitting programs that are not installed. */
  versions: Record<string, string>;
  driver: string;
  pinning: string;
}

const VERSION_OF = {
  nginx: ['nginx', '-v'],
  Varnish: ['varnishd', '-V'],
  Redis: ['redis-server', '--version'],
} as const;

export function describeMachine(): Machine {
  const { server, driver, upstream } = CORES;
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.version,
    versions: Object.fromEntries(
      Object.entries(VERSION_OF).flatMap(([name, command]) => {
        const version = versionOf(command);
        return version === undefined ? [] : [[name, version]];
      }),
    ),
    driver: DRIVER,
    pinning: CAN_PIN
      ? `server on core ${server}, driver on ${driver}, upstream on ${upstream}`
      : 'none: one core, or no taskset',
  };
}

function versionOf([program, flag]: readonly [string, string]): string | undefined {
  const { status, stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' });
  return status === 0 ? /\d+\.\d+[.\d]*/.exec(stdout + stderr)?.[0] : undefined;
}
