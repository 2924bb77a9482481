// Which of several Handle servers to ask first: the one that is first in the list and worked last.

export interface FailoverOptions<Server> {
  /** The primary, then the mirrors, in the order in which they are preferred. */
  servers: readonly Server[];
  /** How long a server that failed is asked only when all others fail too. */
  avoidMs: number;
  now: () => number;
}

export interface Failover<Server> {
  /** All servers, those that are avoided last. */
  order: () => Server[];
  worked: (server: Server) => void;
  failed: (server: Server) => void;
}

/**
 * Remembers what works. When the time of a server that failed is over, one question finds out whether it
 * is back: that question renews its time, so that the others do not wait with it.
 */
export function createFailover<Server>(options: FailoverOptions<Server>): Failover<Server> {
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
    worked(server) {
      avoidedUntil.delete(server);
    },
    failed(server) {
      avoidedUntil.set(server, now() + avoidMs);
    },
  };
}
