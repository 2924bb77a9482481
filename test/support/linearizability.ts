// Checks a history of reads and writes for linearizability. Each handle is a register, and each write a
// unique version.

/** A request as its client saw it. All times use the same clock. */
export interface Operation {
  kind: 'read' | 'write';
  handle: string;
  client: string;
  instance: string;
  invokedAt: number;
  /** Infinity for a write with unknown outcome, which may take effect at any later time, or never. */
  respondedAt: number;
  /** The version read or written. */
  version: string;
  /** The only version that a conditional write may replace. */
  replaces?: string;
}

export interface Fault {
  kind: 'stale read' | 'lost update' | 'never written';
  what: string;
}

/** Reads that started after a different read had returned a newer, unacknowledged version. */
export interface NewThenOld {
  count: number;
  /** Cases in which one client saw both versions. */
  ofOneClient: number;
  /**
   * Maximum time from the end of the first read of the newer version to the start of the last read of the
   * older version.
   */
  longestMs: number;
}

export interface Verdict {
  faults: Fault[];
  newThenOld: NewThenOld;
}

/** A version, its write and its reads. */
interface Version {
  write: Operation;
  reads: Operation[];
  /** The version that replaced this version in a conditional write. */
  next?: Version;
}

/** Consecutive versions, each of which replaced its predecessor in a conditional write. */
interface Chain {
  versions: Version[];
  /** First acknowledgement in the chain: later requests belong to the chain or follow it. */
  acknowledgedAt: number;
  /** Start of the chain's last write, and of its last request. */
  lastWriteAt: number;
  lastUseAt: number;
}

/** Checks a history in which every handle starts with the version `initial`. */
export function checkHistory(history: readonly Operation[], initial: string): Verdict {
  const verdict: Verdict = { faults: [], newThenOld: { count: 0, ofOneClient: 0, longestMs: 0 } };
  const byHandle = new Map<string, Operation[]>();
  for (const operation of history) {
    const known = byHandle.get(operation.handle);
    if (known === undefined) byHandle.set(operation.handle, [operation]);
    else known.push(operation);
  }
  for (const operations of byHandle.values()) checkRegister(operations, initial, verdict);
  return verdict;
}

function checkRegister(operations: Operation[], initial: string, { faults, newThenOld }: Verdict): void {
  const versions = versionsOf(operations, initial, faults);
  const chains = chainsOf(versions, faults);
  for (const chain of chains) checkChain(chain, faults);
  chains.forEach((one, at) => {
    for (const other of chains.slice(at + 1)) checkPair(one, other, faults);
  });
  countNewThenOld(chains, newThenOld);
}

/** The write of the initial version. */
const START: Omit<Operation, 'version'> = {
  kind: 'write',
  handle: '',
  client: 'nobody',
  instance: 'no instance',
  invokedAt: -Infinity,
  respondedAt: -Infinity,
};

/** Omits unseen writes with unknown outcome, which may never have happened. */
function versionsOf(operations: readonly Operation[], initial: string, faults: Fault[]): Version[] {
  const versions = new Map<string, Version>([
    [initial, { write: { ...START, version: initial }, reads: [] }],
  ]);
  for (const write of operations)
    if (write.kind === 'write') versions.set(write.version, { write, reads: [] });
  for (const read of operations.filter(({ kind }) => kind === 'read')) {
    const version = versions.get(read.version);
    if (version !== undefined && version.write.invokedAt <= read.respondedAt) version.reads.push(read);
    else faults.push({ kind: 'never written', what: describe(read) });
  }
  // A seen version implies that the versions it replaced were written too.
  const happened = new Set<Version>();
  const mark = (version: Version | undefined): void => {
    if (version === undefined || happened.has(version)) return;
    happened.add(version);
    const { replaces } = version.write;
    if (replaces === undefined) return;
    if (versions.has(replaces)) mark(versions.get(replaces));
    else faults.push({ kind: 'never written', what: describe(version.write) });
  };
  for (const version of versions.values())
    if (version.write.respondedAt < Infinity || version.reads.length > 0) mark(version);
  return [...happened];
}

function chainsOf(versions: readonly Version[], faults: Fault[]): Chain[] {
  const byName = new Map(versions.map((version) => [version.write.version, version]));
  const heads: Version[] = [];
  for (const version of versions) {
    const replaced = byName.get(version.write.replaces ?? '');
    if (replaced === undefined) heads.push(version);
    else if (replaced.next === undefined) replaced.next = version;
    else {
      heads.push(version);
      const what = `both replace the same version: ${describe(replaced.next.write)}; ${describe(version.write)}`;
      faults.push({ kind: 'lost update', what });
    }
  }
  const chains = heads.map(chainFrom);
  const chained = new Set(chains.flatMap((chain) => chain.versions));
  const inCircle = versions.filter((version) => !chained.has(version));
  if (inCircle.length > 0) {
    const what = `each replaces another of them: ${inCircle.map(({ write }) => describe(write)).join('; ')}`;
    faults.push({ kind: 'lost update', what });
  }
  return chains;
}

function chainFrom(head: Version): Chain {
  const versions = [head];
  for (let { next } = head; next !== undefined; { next } = next) versions.push(next);
  const writes = versions.map(({ write }) => write);
  const lastWriteAt = Math.max(...writes.map(({ invokedAt }) => invokedAt));
  return {
    versions,
    acknowledgedAt: Math.min(...writes.map(({ respondedAt }) => respondedAt)),
    lastWriteAt,
    lastUseAt: Math.max(lastWriteAt, ...readsOf(versions).map(({ invokedAt }) => invokedAt)),
  };
}

const readsOf = (versions: readonly Version[]): Operation[] => versions.flatMap(({ reads }) => reads);

/** Reports requests for a version if they started after its replacement was acknowledged. */
function checkChain({ versions }: Chain, faults: Fault[]): void {
  versions.forEach(({ write, reads }, at) => {
    const later = earliest(versions.slice(at + 1).map((version) => version.write));
    if (later === undefined) return;
    for (const late of [write, ...reads].filter(({ invokedAt }) => invokedAt > later.respondedAt))
      faults.push(faultOf(late, later));
  });
}

/**
 * Reports chains without a valid order: each was acknowledged before a request for the other started.
 * Checking pairs is sufficient, because every longer cycle contains such a pair, the two acknowledged first
 * (Gibbons and Korach, Testing Shared Memories).
 */
function checkPair(one: Chain, other: Chain, faults: Fault[]): void {
  if (!isBefore(one, other) || !isBefore(other, one)) return;
  const isFirst = one.acknowledgedAt < other.lastWriteAt;
  const isSecond = other.acknowledgedAt < one.lastWriteAt;
  if (isFirst && isSecond) {
    const what = `neither can be first: ${[one, other].map(describeChain).join('; ')}`;
    faults.push({ kind: 'lost update', what });
    return;
  }
  // Reports readers that disagree about the order of concurrent writes.
  const [earlier, later] = isSecond ? [other, one] : [one, other];
  const acknowledged = earliest(later.versions.map(({ write }) => write));
  for (const read of readsOf(earlier.versions))
    if (acknowledged && read.invokedAt > acknowledged.respondedAt) faults.push(faultOf(read, acknowledged));
}

const isBefore = (one: Chain, other: Chain): boolean => one.acknowledgedAt < other.lastUseAt;

const earliest = (writes: readonly Operation[]): Operation | undefined =>
  writes.reduce<Operation | undefined>(
    (first, write) => (first === undefined || write.respondedAt < first.respondedAt ? write : first),
    undefined,
  );

function countNewThenOld(chains: readonly Chain[], newThenOld: NewThenOld): void {
  for (const chain of chains) {
    const newer = chains.filter((other) => other !== chain && isBefore(chain, other));
    const after = newer.flatMap(({ versions }) => versions);
    chain.versions.forEach(({ reads }, at) => {
      const shown = firstShown([...chain.versions.slice(at + 1), ...after]);
      for (const read of reads) countIfOlder(read, shown, newThenOld);
    });
  }
}

/** Returns the time at which each client first saw one of the versions. */
function firstShown(versions: readonly Version[]): Map<string, number> {
  const shown = new Map<string, number>();
  for (const { reads } of versions)
    for (const { client, respondedAt } of reads)
      shown.set(client, Math.min(respondedAt, shown.get(client) ?? Infinity));
  return shown;
}

function countIfOlder(read: Operation, newer: ReadonlyMap<string, number>, newThenOld: NewThenOld): void {
  const firstAt = Math.min(...newer.values());
  if (firstAt >= read.invokedAt) return;
  newThenOld.count++;
  if ((newer.get(read.client) ?? Infinity) < read.invokedAt) newThenOld.ofOneClient++;
  newThenOld.longestMs = Math.max(newThenOld.longestMs, read.invokedAt - firstAt);
}

const faultOf = (late: Operation, acknowledged: Operation): Fault => ({
  kind: late.kind === 'read' ? 'stale read' : 'lost update',
  what: `${describe(late)}, begun ${(late.invokedAt - acknowledged.respondedAt).toFixed(2)} ms after the acknowledgement: ${describe(acknowledged)}`,
});

const describeChain = ({ versions }: Chain): string =>
  versions.map(({ write }) => describe(write)).join(', ');

function describe({ kind, handle, client, instance, version, ...operation }: Operation): string {
  const { invokedAt, respondedAt, replaces } = operation;
  const condition = replaces === undefined ? '' : ` for ${replaces}`;
  return `${client} ${kind}s ${handle} version ${version}${condition} at ${instance} from ${invokedAt.toFixed(2)} to ${respondedAt.toFixed(2)}`;
}
