// Relays TCP with a delay.
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

export interface SlowLine {
  port: number;
  /** Delay of each chunk, in both directions. */
  delayMs: number;
}

/** Starts a relay to a local port, and closes it when the test ends. */
export async function startSlowLine(toPort: number, delayMs: number): Promise<SlowLine> {
  const open = new Set<Socket>();
  const line: SlowLine = { port: 0, delayMs };
  const pass = (from: Socket, to: Socket): void => {
    open.add(from);
    from.on('error', () => undefined);
    from.on('data', (bytes) => {
      setTimeout(() => to.write(bytes), line.delayMs);
    });
    from.once('close', () => {
      open.delete(from);
      to.destroy();
    });
  };
  const server = createServer((near) => {
    const far = connect(toPort, '127.0.0.1');
    pass(near, far);
    pass(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  line.port = (server.address() as AddressInfo).port;
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return line;
}
