// The types of the library proxy-addr, which has none.
declare module 'proxy-addr' {
  /** @throws TypeError for an invalid address, network or network name */
  export function compile(trusted: readonly string[]): (address: string) => boolean;
}
