// Does the same with many things, but not with all at once.

/** The results in the order of the items. The first failure fails it all, and nothing new is begun. */
export async function mapLimited<T, R>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const [at, item] of queue) {
      if (hasFailed) return;
      results[at] = await work(item);
    }
  };
  const workers = Array.from({ length: Math.min(concurrency, items.length) }, worker);
  await Promise.all(workers).catch((failure: unknown) => {
    hasFailed = true;
    throw failure;
  });
  return results;
}
