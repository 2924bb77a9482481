// Processor time of work, independent of the other load of the machine.

/** CPU time of all threads of this process (ms). */
export async function cpuMs(work: () => unknown): Promise<number> {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}
