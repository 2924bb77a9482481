// Runs the package's command in a pipe.
import { spawn } from 'node:child_process';
import { ROOT, follow, startProgram } from './built-proxy.js';

const PROGRAM = 'dist/main.js';

/** Runs `handle-resolver-proxy` with only these arguments and variables. */
export async function cli(args: string[], env: Record<string, string> = {}) {
  const { exited, stdout, stderr } = startProgram([PROGRAM, ...args], env);
  const { code } = await exited;
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Runs the command with `input` as standard input. */
export async function cliWith(input: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: ROOT, env, stdio: 'pipe' });
  const { exited, stdout, stderr } = follow(child);
  child.stdin.end(input);
  const { code } = await exited;
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Removes the lines that report progress every two seconds, of which a slow machine prints some. */
export const withoutProgress = (stderr: string): string =>
  stderr.replaceAll(/^\d.*, \d+\/s(?:, \d+ s left)?\n/gm, '');
