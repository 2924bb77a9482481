// Runs the package's command on a terminal created by `script` (util-linux).
import { spawn } from 'node:child_process';
import { ROOT, follow } from './built-proxy.js';

export interface OnTerminal {
  /** Returns stdout and stderr so far, including overwritten lines. */
  screen: () => string;
  exited: Promise<{ code: number | null }>;
  /** Presses these keys. */
  press: (keys: string) => void;
}

export const CTRL_C = '\u0003';

/** Sets a width at which no line wraps. */
const SIZE = 'stty cols 200 rows 50';

/** Runs `handle-resolver-proxy` with only these arguments and variables. */
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
