// `resolve --native`: resolves over TCP and UDP through the native listeners of the built program.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ByteWriter } from '../../src/handle/bytes.js';
import { OP_CODE, encodeEnvelope, encodeMessage, frame } from '../../src/plugins/native/codec.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { builtCli, cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { startHostileServer } from '../support/hostile-server.js';

const demo = await startDemoServer();

/** Starts a proxy with both native listeners, and returns their address. */
async function startNative(): Promise<string> {
  const port = String(await freePort());
  await startBuiltProxy({ UPSTREAM_URL: demo.url, NATIVE_TCP_PORT: port, NATIVE_UDP_PORT: port });
  return `127.0.0.1:${port}`;
}

const VERSION = { major: 2, minor: 11 };
const FLAGS = { isCompressed: false, isEncrypted: false, isTruncated: false };
const HEAD = { version: VERSION, suggested: VERSION, ...FLAGS, sessionId: 0, requestId: 1, sequence: 0 };

/** Returns a successful response, by default the empty record of another handle. */
function success(
  opCode: number = OP_CODE.resolution,
  body = new ByteWriter().sizedText('21.T1/OTHER').int32(0).finish(),
) {
  const rest = { flags: 0, siteSerial: 1, recursionCount: 0, expiration: 0 };
  return encodeMessage({ header: { opCode, responseCode: 1, ...rest }, body, credential: undefined });
}

const resolve = (handle: string, address: string, ...options: string[]) =>
  cli(['resolve', handle, '--native', address, ...options]);

describe('resolve --native', () => {
  test.each(['tcp', 'udp'])('prints the record over %s', async (transport) => {
    const address = `${transport}://${await startNative()}`;
    const { code, stdout, stderr } = await builtCli(['resolve', '21.T11998/demo', '--native', address]);
    expect([code, stderr]).toEqual([0, `response code 1 over ${transport.toUpperCase()}\n`]);
    const { responseCode, handle, values } = JSON.parse(stdout) as Record<string, unknown>;
    expect([responseCode, handle]).toEqual([1, '21.T11998/demo']);
    expect(values).toContainEqual(
      expect.objectContaining({ type: 'URL', data: { format: 'string', value: 'https://example.org/demo' } }),
    );
  });

  test('uses TCP by default, and prints a line per value with --plain', async () => {
    const { code, stdout } = await resolve('21.T11998/demo', await startNative(), '--plain');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\tURL\t\d+\thttps:\/\/example\.org\/demo$/m);
  });

  test('exits with 1 for a missing handle', async () => {
    const { code, stderr } = await resolve('21.T11998/missing', `udp://${await startNative()}`);
    expect([code, stderr]).toEqual([1, expect.stringContaining('response code 100 over UDP')]);
  });

  test.each(['tcp', 'udp'])('exits with 1 when the %s port is closed', async (transport) => {
    const closed = await freePort();
    const { code, stderr } = await resolve('21.T11998/demo', `${transport}://127.0.0.1:${closed}`);
    expect([code, stderr]).toEqual([1, expect.stringContaining('no response from')]);
  });

  test('prints the handle of the response, and fails for one without a record', async () => {
    const answer = async (message: Buffer) => {
      const url = await startHostileServer((socket) => socket.end(frame(HEAD, message)));
      return resolve('21.T1/a', url.replace('http:', 'tcp:'));
    };
    const other = await answer(success());
    expect(other).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"handle":"21.T1/OTHER"') as string,
    });
    const none = await answer(success(OP_CODE.siteInfo, Buffer.alloc(10)));
    expect(none).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('\nthe response is not a record\n') as string,
    });
  });

  test('prints the message of a server that could not read the operation of the request', async () => {
    const header = { opCode: OP_CODE.reserved, responseCode: 4, flags: 0, siteSerial: 1, recursionCount: 0 };
    const refusal = {
      header: { ...header, expiration: 0 },
      body: new ByteWriter().sizedText('not understood').finish(),
      credential: undefined,
    };
    const url = await startHostileServer((socket) => socket.end(frame(HEAD, encodeMessage(refusal))));
    const { code, stdout } = await resolve('21.T1/a', url.replace('http:', 'tcp:'));
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      { responseCode: 4, handle: '21.T1/a', message: 'not understood' },
    ]);
  });

  test('ignores packets that hold no part of a message', async () => {
    const server = createSocket('udp4');
    onTestFinished(() => {
      server.close();
    });
    const message = success();
    server.on('message', (_, { port, address }) => {
      const empty = Array.from({ length: 3 }, (_each, sequence) =>
        encodeEnvelope({ ...HEAD, sequence, length: message.length }),
      );
      for (const packet of [Buffer.alloc(3), ...empty, frame(HEAD, message)])
        server.send(packet, port, address);
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    const { code, stderr } = await resolve('21.T1/a', `udp://127.0.0.1:${server.address().port}`);
    expect([code, stderr]).toEqual([0, 'response code 1 over UDP\n']);
  });

  test.each(['http://127.0.0.1:8000', 'tcp://', '127.0.0.1/x'])('rejects the address %s', async (address) => {
    const { code, stderr } = await resolve('21.T11998/demo', address);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Give a host')]);
  });
});
