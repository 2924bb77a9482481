// Runs the commands of the package: in this process, or as the built program in a pipe.
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';
import { runCommand } from '../../src/cli/program.js';
import { startProgram } from './built-proxy.js';

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the built `handle-resolver-proxy` with only these arguments and variables. */
export async function builtCli(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const { exited, stdout, stderr } = startProgram(['dist/main.js', ...args], env);
  const { code } = await exited;
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Collects what a command writes, and removes the listeners that it adds. */
function capture(stream: NodeJS.WriteStream): { text: () => string; end: () => void } {
  let text = '';
  const listeners = stream.listeners('error');
  const spy = vi.spyOn(stream, 'write').mockImplementation((chunk) => {
    text += Buffer.from(chunk as Uint8Array).toString();
    return true;
  });
  const end = (): void => {
    spy.mockRestore();
    const added = stream.listeners('error').filter((listener) => !listeners.includes(listener));
    for (const listener of added) stream.off('error', listener as () => void);
  };
  return { text: () => text, end };
}

let isRunning = false;

/**
 * Runs a command in this process with only these arguments and variables, because the start of a program takes longer
 * than most commands. One runs at a time.
 */
export const cli = (args: string[], env?: Record<string, string>): Promise<Ended> => cliWith('', args, env);

/** Runs a command as `cli` does, with `input` as standard input. */
export async function cliWith(
  input: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  if (isRunning) throw new Error('a command is running in this process');
  isRunning = true;
  const { env: outerEnv, stdin } = process;
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)];
  const setInput = (value: unknown): unknown =>
    Object.defineProperty(process, 'stdin', { value, configurable: true });
  // Node.js writes warnings past `process.stderr.write`.
  const warn = ({ message }: Error): unknown => process.stderr.write(`warning: ${message}\n`);
  let isRestored = false;
  const restore = (): void => {
    if (isRestored) return;
    isRestored = true;
    for (const { end } of [stdout, stderr]) end();
    process.off('warning', warn);
    process.env = outerEnv;
    setInput(stdin);
    process.exitCode = undefined;
    isRunning = false;
  };
  // Also if the test ends before its command.
  onTestFinished(restore);
  process.on('warning', warn);
  process.env = { ...env };
  setInput(Readable.from([input]));
  try {
    await runCommand(args);
    // A warning is emitted in a later tick.
    await setImmediate();
    return { code: Number(process.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    restore();
  }
}

/** Removes the lines that report progress every two seconds, of which a slow machine prints some. */
export const withoutProgress = (stderr: string): string =>
  stderr.replaceAll(/^\d.*, \d+\/s(?:, \d+ s left)?\n/gm, '');
