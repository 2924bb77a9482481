// Measures CPU time, which does not depend on other load on the machine.

/** Returns the CPU time (ms) of all threads of this process during `work`. */
export async function cpuMs(work: () => unknown): Promise<number> {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}
