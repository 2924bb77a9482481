// Upstream responses with unexpected bytes: compressed, duplicate or unsolicited.
import type { Diagnosis } from '../../src/errors.js';
import { once } from 'node:events';
import type net from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { listenHttp, listenRaw, NOT_FOUND, openClient } from './upstream-loopback.js';

const NOT_FOUND_REPLY = `HTTP/1.1 404 Not Found\r\nContent-Length: ${NOT_FOUND.length}\r\n\r\n${NOT_FOUND}`;

const listenPacked = (coding: string, body: Buffer) =>
  listenHttp((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json', 'content-encoding': coding }).end(body);
  });

describe('unexpected bytes in an upstream response', () => {
  test.each([
    ['gzip', gzipSync(NOT_FOUND)],
    ['X-GZIP', gzipSync(NOT_FOUND)],
    ['deflate', deflateSync(NOT_FOUND)],
    ['br', brotliCompressSync(NOT_FOUND)],
    ['gzip, br', brotliCompressSync(gzipSync(NOT_FOUND))],
    ['identity', Buffer.from(NOT_FOUND)],
  ])('are decompressed (%s)', async (coding, body) => {
    const { resolve } = openClient(await listenPacked(coding, body));
    expect(await resolve()).toEqual({ kind: 'not-found' });
  });

  test('cause an invalid-response error, and no retry, when the compression is corrupt', async () => {
    const server = await listenPacked('gzip', Buffer.from(NOT_FOUND));
    await expect(openClient(server).resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: expect.objectContaining({
        cause: expect.stringContaining('Z_DATA_ERROR') as string,
      }) as Diagnosis,
    });
    expect(server.connections()).toBe(1);
  });

  test('are not missed when an error has a content coding, and no body', async () => {
    const server = await listenHttp((_request, response) => {
      response.writeHead(503, { 'content-encoding': 'gzip' }).end();
    });
    await expect(openClient(server).resolve()).rejects.toMatchObject({ code: 'UPSTREAM_BUSY' });
  });

  test.each(['rot13', 'constructor', '__proto__'])(
    'cause an invalid-response error when the content coding is unknown (%s)',
    async (coding) => {
      const { resolve } = openClient(await listenPacked(coding, Buffer.from('{"erfcbafrPbqr":100}')));
      await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
    },
  );

  test('are not decompressed when more codings are nested than any server uses', async () => {
    const server = await listenPacked(Array<string>(6).fill('gzip').join(), gzipSync(NOT_FOUND));
    await expect(openClient(server).resolve()).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
    expect(server.connections()).toBe(1);
  });

  test('are no longer read when the decompressed response exceeds the limit', async () => {
    const { resolve } = openClient(await listenPacked('gzip', gzipSync(' '.repeat(1_000_000))), {
      maxRecordBytes: 50_000,
    });
    await expect(resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: expect.objectContaining({
        cause: expect.stringContaining('more than 50000 bytes') as string,
      }) as Diagnosis,
    });
  });

  test('are decompressed only up to the limit, even after the complete response has arrived', async () => {
    const head = gzipSync(' ').subarray(0, 10);
    const broken = Buffer.concat([head, Buffer.alloc(100, 0xff)]);
    const body = Buffer.concat([gzipSync(' '.repeat(1_000_000)), broken]);
    const { resolve } = openClient(await listenPacked('gzip', body), { maxRecordBytes: 50_000 });
    await expect(resolve()).rejects.toMatchObject({
      diagnosis: expect.objectContaining({
        cause: expect.stringContaining('more than 50000 bytes') as string,
      }) as Diagnosis,
    });
  });

  const LENGTH = `Content-Length: ${NOT_FOUND.length}\r\n`;
  const CHUNKS = `${NOT_FOUND.length.toString(16)}\r\n${NOT_FOUND}\r\n0\r\n\r\n`;

  test.each([
    ['two lengths', `${LENGTH}${LENGTH}\r\n${NOT_FOUND}`],
    ['a list of lengths', `${LENGTH.trim()}, 3\r\n\r\n${NOT_FOUND}`],
    ['a length, then chunks', `${LENGTH}Transfer-Encoding: chunked\r\n\r\n${CHUNKS}`],
    ['chunks, then a length', `Transfer-Encoding: chunked\r\n${LENGTH}\r\n${CHUNKS}`],
  ])('are diagnosed, and not requested again, when the response has %s', async (_what, rest) => {
    const server = await listenRaw((socket) => socket.write(`HTTP/1.1 404 Not Found\r\n${rest}`));
    await expect(openClient(server).resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: {
        cause: expect.stringContaining('several lengths, or a length and chunks') as string,
        remedy: expect.stringContaining('one Content-Length') as string,
      },
    });
    expect(server.connections()).toBe(1);
  });

  test('are not used for the next request when they form a second response', async () => {
    const lie = NOT_FOUND_REPLY.replace('404 Not Found', '500 A lie');
    let times = 0;
    const server = await listenRaw((socket) => socket.write(NOT_FOUND_REPLY + (times++ === 0 ? lie : '')));
    const { resolve } = openClient(server);
    expect(await resolve()).toEqual({ kind: 'not-found' });
    expect(await resolve()).toEqual({ kind: 'not-found' });
    expect(server.connections()).toBe(2);
  });

  test('prevent reuse of their connection when unsolicited', async () => {
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
});
