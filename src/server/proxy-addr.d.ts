declare module 'proxy-addr' {
  /** @throws TypeError for what is no address, network or name of networks */
  export function compile(trusted: readonly string[]): (address: string) => boolean;
}
