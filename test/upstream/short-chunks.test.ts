// A server cannot make a read expensive by the length of its chunks, or by interim responses.
import '../support/real-sockets.js';
import { expect, test } from 'vitest';
import { startHostileServer } from '../support/hostile-server.js';
import { startProxy } from '../support/proxy.js';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';

const value = { index: 1, type: 'URL', data: { format: 'string', value: 'x'.repeat(100_000) }, ttl: 86_400 };
const RECORD = JSON.stringify({ responseCode: 1, handle: '21.T1/a', values: [value] });

/** Starts a proxy in front of a server that sends the record in chunks of `bytes`. */
async function startBehindChunks(bytes: number) {
  const pieces = RECORD.match(new RegExp(`.{1,${bytes}}`, 'g')) ?? [];
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('');
  const url = await startHostileServer((socket) => {
    socket.end(`${HEAD}${chunks}0\r\n\r\n`);
  });
  return startProxy({ UPSTREAM_URL: url });
}

test.each([100, 1000])('a record in chunks of %i bytes is read', async (bytes) => {
  const { ask } = await startBehindChunks(bytes);
  const { status, text } = await ask('/api/handles/21.T1/a');
  expect({ status, text }).toEqual({ status: 200, text: RECORD });
});

test('a record in thousands of chunks of a few bytes is an invalid response', async () => {
  const { ask } = await startBehindChunks(10);
  const { status, text } = await ask('/api/handles/21.T1/a');
  expect(status).toBe(502);
  expect(JSON.parse(text)).toMatchObject({ responseCode: 2 });
});

const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

test.each([
  [10, '103', 200, HINTS],
  [5000, '103', 502, HINTS],
  [10, '100', 200, CONTINUE],
  [2000, '100', 502, CONTINUE],
])('a record after %i interim responses %s has status %i', async (count, _status, expected, interim) => {
  const url = await startHostileServer((socket) => {
    socket.end(`${interim.repeat(count)}${HEAD}${RECORD.length.toString(16)}\r\n${RECORD}\r\n0\r\n\r\n`);
  });
  const { ask } = await startProxy({ UPSTREAM_URL: url });
  expect((await ask('/api/handles/21.T1/a')).status).toBe(expected);
});
