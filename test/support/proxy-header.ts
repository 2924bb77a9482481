// Writes headers of the PROXY protocol, as balancers do.

export const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** Returns a header of version 2. */
export function binaryHeader(command: number, family: number, rest: Buffer): Buffer {
  const head = Buffer.from([command, family, 0, 0]);
  head.writeUInt16BE(rest.length, 2);
  return Buffer.concat([SIGNATURE, head, rest]);
}

/** Returns a header of version 1 for an IPv4 client. */
export const textHeader = (client: string): string => `PROXY TCP4 ${client} 192.0.2.1 4711 80\r\n`;
