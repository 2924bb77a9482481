// Stops the proxy with the shell through which npx has started it.

const POLL_MS = 250;

/** npm sends SIGTERM to the shell only, and a shell ends without passing it on: the process gets another parent. */
export function stopWithNpmShell({ npm_lifecycle_event: event }: NodeJS.ProcessEnv = process.env): void {
  if (event === undefined) return;
  const { ppid } = process;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, POLL_MS);
  timer.unref();
}
