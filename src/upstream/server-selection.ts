// Which of several Handle servers gets a read first: the first in the list that worked last.

interface ServerSelectionOptions<Server> {
  /** The primary, then the mirrors, in the order in which they are preferred. */
  servers: readonly Server[];
  /** A server that failed is tried last for this time. */
  avoidMs: number;
  now: () => number;
}

interface ServerSelection<Server> {
  /** All servers, avoided ones last. */
  order: () => Server[];
  succeeded: (server: Server) => void;
  failed: (server: Server) => void;
}

/**
 * When the time of a failed server is over, one read tries it again. That read renews the time, so that others do not
 * wait for it too.
 */
export function createServerSelection<Server>(
  options: ServerSelectionOptions<Server>,
): ServerSelection<Server> {
  const { servers, avoidMs, now } = options;
  const avoidedUntil = new Map<Server, number>();

  function isGood(server: Server): boolean {
    const until = avoidedUntil.get(server);
    if (until === undefined) return true;
    if (now() < until) return false;
    avoidedUntil.set(server, now() + avoidMs);
    return true;
  }

  return {
    order() {
      const first = servers.find(isGood);
      if (first === undefined) return [...servers];
      const others = servers.filter((server) => server !== first);
      const isAvoided = (server: Server): boolean => avoidedUntil.has(server);
      return [first, ...others.filter((server) => !isAvoided(server)), ...others.filter(isAvoided)];
    },
    succeeded(server) {
      avoidedUntil.delete(server);
    },
    failed(server) {
      avoidedUntil.set(server, now() + avoidMs);
    },
  };
}
