// The priority of a load driver.
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Gives way to the program that requests hits on the same core: its times are to be those of the proxy. */
export function yieldToOthers(): void {
  const nice = 15;
  setPriority(nice);
  try {
    // If Linux groups processes by session, the priority counts only within the session.
    writeFileSync('/proc/self/autogroup', String(nice));
  } catch {
    // This kernel has no such groups.
  }
}
