// Acknowledgements of published changes: collects those of other members, and sends those of this one.

interface PendingCall {
  from: Set<string>;
  onReceived: () => void;
}

/** They may arrive before the list of members to wait for. */
export class Acknowledgements {
  readonly #calls = new Map<string, PendingCall>();

  begin(call: string): void {
    this.#calls.set(call, { from: new Set(), onReceived: () => undefined });
  }

  end(call: string): void {
    this.#calls.delete(call);
  }

  receive(member: string, calls: readonly string[]): void {
    for (const name of calls) {
      const call = this.#calls.get(name);
      call?.from.add(member);
      call?.onReceived();
    }
  }

  /** Members that have not acknowledged. */
  missing(call: string, members: readonly string[]): string[] {
    const from = this.#calls.get(call)?.from;
    return members.filter((member) => !from?.has(member));
  }

  /** Settles when all members have acknowledged. */
  waitForAll(call: string, members: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.missing(call, members).length === 0) resolve();
      };
      const begun = this.#calls.get(call);
      if (begun) begun.onReceived = check;
      check();
    });
  }
}

/**
 * Batches the acknowledgements of one turn of the event loop into one message per member. If it is lost, the member waits
 * for the lease instead.
 */
export function createAcknowledger(
  id: string,
  publish: (member: string, text: string) => void,
): (member: string, call: string) => void {
  const unsent = new Map<string, string[]>();
  return function acknowledge(member, call) {
    const calls = unsent.get(member);
    if (calls) {
      calls.push(call);
      return;
    }
    unsent.set(member, [call]);
    queueMicrotask(() => {
      publish(member, [id, ...(unsent.get(member) ?? [])].join(' '));
      unsent.delete(member);
    });
  };
}
