declare module 'proxy-addr' {
  /** @throws TypeError for an invalid address, network or name of networks */
  export function compile(trusted: readonly string[]): (address: string) => boolean;
}
