// Acknowledges calls to the members that wait for them.

/**
 * All that is acknowledged in one turn of the event loop is one message to each member. One that is lost makes the
 * member wait for the lease.
 */
export function createAcknowledge(
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
