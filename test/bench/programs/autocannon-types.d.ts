// Minimal types for autocannon, which ships none.
declare module 'autocannon' {
  function autocannon(options: autocannon.Options): Promise<autocannon.Result>;

  namespace autocannon {
    interface Request {
      method?: string;
      path?: string;
      headers?: Record<string, string>;
      body?: string;
    }

    interface Options {
      url: string;
      connections: number;
      /** Number of requests, as an alternative to `duration`. */
      amount?: number;
      /** Duration in seconds. */
      duration?: number;
      requests: { setupRequest: (request: Request) => Request }[];
    }

    interface Result {
      requests: { total: number };
      /** Latency in milliseconds. */
      latency: { p50: number; p99: number };
      /** Duration in seconds. */
      duration: number;
      errors: number;
      timeouts: number;
      '4xx': number;
      '5xx': number;
    }
  }

  export default autocannon;
}
