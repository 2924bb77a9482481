// Whether this instance should get requests: each part says yes or no, and the report names who says no.

export interface ReadinessReport {
  ready: boolean;
  notReady: string[];
}

export interface Readiness {
  register(name: string, isReady: () => boolean): void;
  report(): ReadinessReport;
}

export function createReadiness(): Readiness {
  const parts = new Map<string, () => boolean>();
  return {
    register(name, isReady) {
      if (parts.has(name)) throw new TypeError(`two parts are called ${name}`);
      parts.set(name, isReady);
    },
    report() {
      const notReady = [...parts].filter(([, isReady]) => !isReady()).map(([name]) => name);
      return { ready: notReady.length === 0, notReady };
    },
  };
}
