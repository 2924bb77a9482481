// Answers with bytes nobody asked for: packed ones, several at once, and some that come when nothing was asked.
import { once } from 'node:events';
import type net from 'node:net';
import zlib, { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { listenHttp, listenRaw, NOT_FOUND, openClient } from './upstream-loopback.js';

const NOT_FOUND_REPLY = `HTTP/1.1 404 Not Found\r\nContent-Length: ${NOT_FOUND.length}\r\n\r\n${NOT_FOUND}`;

const listenPacked = (coding: string, body: Buffer) =>
  listenHttp((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json', 'content-encoding': coding }).end(body);
  });

test.each([
  ['gzip', gzipSync(NOT_FOUND)],
  ['X-GZIP', gzipSync(NOT_FOUND)],
  ['deflate', deflateSync(NOT_FOUND)],
  ['br', brotliCompressSync(NOT_FOUND)],
  ['gzip, br', brotliCompressSync(gzipSync(NOT_FOUND))],
  ['identity', Buffer.from(NOT_FOUND)],
])('an answer that comes packed (%s) is unpacked', async (coding, body) => {
  const { resolve } = openClient(await listenPacked(coding, body));
  expect(await resolve()).toEqual({ kind: 'not-found' });
});

test('what cannot be unpacked is a bad answer, asked for once', async () => {
  const server = await listenPacked('gzip', Buffer.from(NOT_FOUND));
  await expect(openClient(server).resolve()).rejects.toMatchObject({
    code: 'UPSTREAM_BAD_ANSWER',
    message: expect.stringContaining('Z_DATA_ERROR') as string,
  });
  expect(server.connections()).toBe(1);
});

test.each(['rot13', 'constructor', '__proto__'])(
  'a coding that nobody knows (%s) is a bad answer',
  async (coding) => {
    const { resolve } = openClient(await listenPacked(coding, Buffer.from('{"erfcbafrPbqr":100}')));
    await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_BAD_ANSWER' });
  },
);

test('an answer packed more often than anybody would is not unpacked', async () => {
  const server = await listenPacked(Array<string>(6).fill('gzip').join(), gzipSync(NOT_FOUND));
  await expect(openClient(server).resolve()).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
  expect(server.connections()).toBe(1);
});

test('an answer that is over the limit once it is unpacked is given up', async () => {
  const { resolve } = openClient(await listenPacked('gzip', gzipSync(' '.repeat(1_000_000))), {
    maxBodyBytes: 50_000,
  });
  await expect(resolve()).rejects.toMatchObject({
    code: 'UPSTREAM_BAD_ANSWER',
    message: expect.stringContaining('more than 50000 bytes') as string,
  });
});

test('nothing more is unpacked of an answer that is given up, even when all of it has come', async () => {
  const unpacker = vi.spyOn(zlib, 'createGunzip');
  const { resolve } = openClient(await listenPacked('gzip', gzipSync(' '.repeat(3_000_000))), {
    maxBodyBytes: 50_000,
  });
  await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_BAD_ANSWER' });
  const { destroyed, readableEnded } = unpacker.mock.results[0]?.value as zlib.Gunzip;
  expect({ destroyed, readableEnded }).toEqual({ destroyed: true, readableEnded: false });
});

test('a second answer to one question is not taken for the answer to the next', async () => {
  const lie = NOT_FOUND_REPLY.replace('404 Not Found', '500 A lie');
  let times = 0;
  const server = await listenRaw((socket) => socket.write(NOT_FOUND_REPLY + (times++ === 0 ? lie : '')));
  const { resolve } = openClient(server);
  expect(await resolve()).toEqual({ kind: 'not-found' });
  expect(await resolve()).toEqual({ kind: 'not-found' });
  expect(server.connections()).toBe(2);
});

test('a connection on which something comes without a question is not used again', async () => {
  const sockets: net.Socket[] = [];
  const server = await listenRaw((socket) => {
    sockets.push(socket);
    socket.write(NOT_FOUND_REPLY);
  });
  const { resolve } = openClient(server);
  await resolve();
  const [first] = sockets as [net.Socket];
  first.write(NOT_FOUND_REPLY.slice(0, 20));
  await once(first, 'close');
  expect(await resolve()).toEqual({ kind: 'not-found' });
  expect(server.connections()).toBe(2);
});
