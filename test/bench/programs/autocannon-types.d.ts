// The part of autocannon that the bench uses; it has no types of its own.
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
      /** Requests in all, instead of a duration. */
      amount?: number;
      /** In seconds. */
      duration?: number;
      requests: { setupRequest: (request: Request) => Request }[];
    }

    interface Result {
      requests: { total: number };
      /** In milliseconds. */
      latency: { p50: number; p99: number };
      /** In seconds. */
      duration: number;
      errors: number;
      timeouts: number;
      '4xx': number;
      '5xx': number;
    }
  }

  export default autocannon;
}
