// What work takes of a processor, however many others want it meanwhile.

/** Of all threads of this process (ms): only what runs in it is measured. */
export async function cpuMs(work: () => unknown): Promise<number> {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}
