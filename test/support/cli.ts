// The command of the package in a pipe.
import { startProgram } from './built-proxy.js';

/** Runs `handle-resolver-proxy` with these arguments, these variables and no others. */
export async function cli(args: string[], env: Record<string, string> = {}) {
  const { exited, stdout, stderr } = startProgram(['dist/cli/main.js', ...args], env);
  const { code } = await exited;
  return { code, stdout: stdout(), stderr: stderr() };
}
