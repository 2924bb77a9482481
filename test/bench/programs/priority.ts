// The priority of a load driver.
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Beside the program that asks for hits, on the same core: their times are to be those of the proxy. */
export function yieldToOthers(): void {
  const nice = 15;
  setPriority(nice);
  try {
    // Where Linux groups processes by session, the priority counts within the session only.
    writeFileSync('/proc/self/autogroup', String(nice));
  } catch {
    // This kernel has no such groups.
  }
}
