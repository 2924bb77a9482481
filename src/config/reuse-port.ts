// Whether several processes can share a port (SO_REUSEPORT) with this Node.js on this system.

/** Systems that spread connections and datagrams over the sockets of a port. */
const SPREADING: readonly string[] = ['linux', 'freebsd', 'sunos', 'aix'];

export function canReusePort(
  version: string = process.versions.node,
  platform: string = process.platform,
): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  // `reusePort` of `net` and `dgram` came with 23.1 and 22.12.
  const isNew = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  return isNew && SPREADING.includes(platform);
}
