// Requests that node:http refuses to parse, answered as the real server answers them.
import type { Duplex } from 'node:stream';
import { writeJson } from '../../src/handle/json.js';
import { type Reply, containerError, protocolError } from './reply.js';

type ParseError = NodeJS.ErrnoException & { rawPacket?: Buffer };

/** Node knows the methods of its list only; the rest is told apart here from broken HTTP. */
export function answerBadRequest(error: ParseError, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const { status, json, html, charset } = refusal(error);
  const body = json === undefined ? (html ?? '') : writeJson(json);
  const type =
    json === undefined ? `text/html;charset=${charset ?? 'utf-8'}` : 'application/json;charset=utf-8';
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function refusal({ code, rawPacket }: ParseError): Reply {
  const method = /^[A-Z]+(?= )/.exec(rawPacket?.toString('latin1') ?? '')?.[0];
  if (code === 'HPE_INVALID_METHOD' && method) return protocolError(501, `Unknown method ${method}`);
  if (code === 'HPE_HEADER_OVERFLOW') return containerError(431, 'Request Header Fields Too Large');
  return containerError(400, 'Bad Request');
}
