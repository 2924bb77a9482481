// Defines tests that need a program from the distribution, for example promtool or nginx.
import { spawnSync } from 'node:child_process';
import { it } from 'vitest';
import { canReusePort } from '../../src/config/start-problems.js';

export interface Ran {
  code: number | null;
  /** Combined stdout and stderr. */
  output: string;
}

/** Runs a program until it exits. */
export function runProgram(program: string, args: string[], input?: string): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    ...(input !== undefined && { input }),
  });
  return { code: status, output: stdout + stderr };
}

const isThere = (program: string): boolean =>
  spawnSync('/bin/sh', ['-c', `command -v ${program}`]).status === 0;

/** Lists what is skipped for lack of a program; if `CI` is set, it fails instead. */
export function skipWithout(program: string, name: string, skip: () => void): void {
  if (process.env['CI'] !== undefined) {
    it(name, () => {
      throw new Error(`${program} is not installed: CI has to run this test`);
    });
    return;
  }
  process.stderr.write(`\n!!! NOT RUN, ${program} is not installed: ${name}\n`);
  skip();
}

/** Defines an `it` that needs a program, see `skipWithout`. */
export function itWithProgram(
  program: string,
  name: string,
  test: () => Promise<void> | void,
  timeoutMs?: number,
): void {
  if (isThere(program)) it(name, test, timeoutMs);
  else
    skipWithout(program, name, () => {
      it.skip(name, test);
    });
}

/**
 * Defines an `it` that needs programs, root and a network. It is skipped and listed if a program or root is
 * missing.
 */
export function itWithRoot(
  programs: readonly string[],
  name: string,
  test: () => Promise<void>,
  timeoutMs: number,
): void {
  const missing = programs.filter((program) => !isThere(program));
  if (process.getuid?.() !== 0) missing.push('root');
  if (missing.length > 0) process.stderr.write(`\n!!! NOT RUN, it needs ${missing.join(', ')}: ${name}\n`);
  it.skipIf(missing.length > 0)(name, test, timeoutMs);
}

/**
 * Defines an `it` for two instances on one port. It is skipped and listed if Node.js or the system lacks
 * support, even if `CI` is set.
 */
export function testWithReusePort(name: string, test: () => Promise<void>): void {
  if (canReusePort()) {
    it(name, test);
  } else {
    process.stderr.write(`\n!!! NOT RUN, it needs Node.js 22.12 or later and Linux: ${name}\n`);
    it.skip(name, test);
  }
}
