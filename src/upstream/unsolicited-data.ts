// Closes a connection to the Handle server on which bytes arrive that no request asked for.
import type http from 'node:http';
import type { Socket } from 'node:net';

/**
 * The bytes would be taken for a part of the next answer, which belongs to another caller. Node takes its parser off
 * a connection as soon as the answer is complete, also while that answer is still being read.
 */
export function destroyOnUnsolicitedData(socket: Socket): void {
  // The first listener, so that it sees each chunk before Node's own may take the parser off.
  socket.prependListener('data', () => {
    if (!hasRequest(socket)) socket.destroy();
  });
}

/** Node keeps the parser of the answer that is awaited there (_http_client.js). */
const hasRequest = (socket: Socket & { parser?: unknown }): boolean =>
  socket.parser !== undefined && socket.parser !== null;

/** Makes an agent of plain connections distrust each that it opens. */
export function closeOnUnsolicitedData(agent: http.Agent): http.Agent {
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (options, created) => {
    const socket = create(options, created) as Socket;
    destroyOnUnsolicitedData(socket);
    return socket;
  };
  return agent;
}
