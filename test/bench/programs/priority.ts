// Sets the priority of a load driver.
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Yields to the program that times hits on the same core, so that it measures only the proxy. */
export function yieldToOthers(): void {
  const nice = 15;
  setPriority(nice);
  try {
    // With autogroups, Linux applies the nice value only within a session, so the group needs one too.
    writeFileSync('/proc/self/autogroup', String(nice));
  } catch {
    // The kernel has no autogroups.
  }
}
