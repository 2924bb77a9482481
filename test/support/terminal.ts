// The command of the package on a terminal of its own, which `script` of util-linux makes.
import { spawn } from 'node:child_process';
import { ROOT, follow } from './built-proxy.js';

export interface OnTerminal {
  /** Everything that was on the screen so far, with the lines it was overwritten with; both outputs. */
  screen: () => string;
  exited: Promise<{ code: number | null }>;
  /** As if these keys were pressed. */
  press: (keys: string) => void;
}

export const CTRL_C = '\u0003';

/** So wide that no line is broken. */
const SIZE = 'stty cols 200 rows 50';

/** Runs `handle-resolver-proxy` with these arguments, these variables and no others. */
export function startOnTerminal(args: string[], env: Record<string, string> = {}): OnTerminal {
  const command = [process.execPath, 'dist/main.js', ...args].map(quoted).join(' ');
  const child = spawn('script', ['-qefc', `${SIZE}; exec ${command}`, '/dev/null'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', SHELL: '/bin/sh', TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { stdout, exited } = follow(child);
  return { screen: stdout, exited, press: (keys) => child.stdin.write(keys) };
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
