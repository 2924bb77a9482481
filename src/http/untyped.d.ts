// Minimal types of the libraries negotiator and proxy-addr, which have none.
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { headers: { accept?: string | undefined } });
    /** Returns the acceptable types among `available`, most preferred first. */
    mediaTypes(available: readonly string[]): string[];
  }
}

declare module 'proxy-addr' {
  /** @throws TypeError for an invalid address, network or network name */
  export function compile(trusted: readonly string[]): (address: string) => boolean;
}
