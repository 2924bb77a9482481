// Commands whose --admin is another program, or an admin listener that misbehaves.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { callAdmin } from '../../src/cli/client.js';
import { cli, withoutProgress } from '../support/cli.js';
import { startHostileServer, writeForEver, writeSlowly } from '../support/hostile-server.js';
import { newFolder } from '../support/folder.js';

const OK = 'HTTP/1.1 200 OK\r\n\r\n';
const EXPORT = 'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n';
const FAILED = 'HTTP/1.1 500 Failed\r\n\r\n';

const COMMANDS = [
  ['stats'],
  ['purge', '21.T1/a'],
  ['traffic'],
  ['traffic', '--unblock', '192.0.2.0/24'],
  ['report', '--prefix', '21.T1'],
  ['export', '--prefix', '21.T1'],
];

/** Only the socket's timeout counts, because on a slow machine the head of a response may take longer. */
function headInTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
}

describe('an admin listener', () => {
  test.each([
    ['nothing', ''],
    ['a page', '<html></html>'],
    ['null', 'null'],
    ['an empty object', '{}'],
    ['an empty list', '[]'],
    ['part of an object', '{"requests":'],
    ['an error page', '<html></html>', 'HTTP/1.1 404 Not Found\r\n\r\n'],
  ])('that responds with %s to any request makes each command fail', async (_, body, head = OK) => {
    const admin = await startHostileServer((socket) => socket.end(head + body));
    for (const command of COMMANDS) {
      const { code, stdout, stderr } = await cli([...command, '--admin', admin]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(
        /^http:.*: this is not the response of an admin listener; check --admin or ADMIN_URL\n$/,
      );
    }
  });

  test('that sends an endless response makes commands fail', async () => {
    const admin = await startHostileServer((socket) => {
      socket.write(OK);
      writeForEver(socket, 'x'.repeat(65_536));
    });
    for (const command of [['stats'], ['purge', '21.T1/a'], ['report', '--prefix', '21.T1']]) {
      const { code, stderr } = await cli([...command, '--admin', admin]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/: the response cannot be read: it has more than 16777216 bytes\n$/);
    }
  });

  test('that sends an endless error makes commands fail with its status', async () => {
    const admin = await startHostileServer((socket) => {
      socket.write(FAILED);
      writeForEver(socket, '\u001b]0;evil\u0007'.repeat(1000));
    });
    for (const command of COMMANDS) {
      const { code, stderr } = await cli([...command, '--admin', admin]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/: status 500: the response cannot be read\n$/);
    }
  });

  test.each<[string, (socket: Socket) => void]>([
    ['never responds', () => undefined],
    ['never ends its headers', (socket) => void socket.write('HTTP/1.1 200 OK\r\nX-A: ')],
    [
      'announces a response for ever',
      (socket) => {
        writeForEver(socket, 'HTTP/1.1 100 Continue\r\n\r\n');
      },
    ],
  ])('that %s is left after a time limit', async (_, answer) => {
    const admin = await startHostileServer(answer);
    await expect(callAdmin({ admin }, '/stats', { waitMs: 50 })).rejects.toThrow(
      `cannot reach ${admin}/stats: no complete response within 0.05 s`,
    );
  });

  test.each([
    ['a byte from time to time', OK, {}],
    ['a byte of an error from time to time, instead of an export', FAILED, { isStream: true }],
  ])('that sends %s is left after the same limit', async (_, head, options) => {
    const admin = await startHostileServer((socket) => {
      socket.write(head);
      writeSlowly(socket);
    });
    const read = async () => (await callAdmin({ admin }, '/stats', { ...options, waitMs: 50 })).toArray();
    await expect(read()).rejects.toThrow(/no complete response within 0.05 s|status 500/);
  });

  test('that stalls in an export is left after the same limit', async () => {
    headInTime();
    const admin = await startHostileServer((socket) => socket.write(`${OK}part`));
    const response = await callAdmin({ admin }, '/export', { isStream: true, waitMs: 50 });
    await expect(response.toArray()).rejects.toThrow('no data within 0.05 s');
  });

  test('that waits for the reader of an export is not left', async () => {
    headInTime();
    const lines = 'x'.repeat(1_000_000);
    const admin = await startHostileServer((socket) => socket.end(OK + lines));
    const response = await callAdmin({ admin }, '/export', { isStream: true, waitMs: 50 });
    for (let times = 0; times < 2; times++) await once(response.socket, 'timeout');
    expect(Buffer.concat((await response.toArray()) as Buffer[])).toHaveLength(lines.length);
  });

  test('that sends a line of an export without an end makes commands fail', async () => {
    const admin = await startHostileServer((socket) => {
      socket.write(`${EXPORT}{"handle":"21.T1/a"`);
      writeForEver(socket, 'x'.repeat(65_536));
    });
    const state = join(newFolder(), 'links');
    for (const command of [['export'], ['check-links', '--state', state]]) {
      const { code, stderr } = await cli([...command, '--prefix', '21.T1', '--admin', admin]);
      const message = 'a line has more than 67108864 characters\n';
      expect([code, withoutProgress(stderr)]).toEqual([1, message]);
    }
  });

  test('that ends in the middle of a line of an export does not replace the file of an earlier one', async () => {
    const admin = await startHostileServer((socket) => socket.end(`${EXPORT}{"handle":"21.T1/a","val`));
    const output = join(newFolder(), 'records');
    writeFileSync(output, 'earlier');
    const { code, stderr } = await cli(['export', '--prefix', '21.T1', '--admin', admin, '--output', output]);
    expect([code, readFileSync(output, 'utf8')]).toEqual([1, 'earlier']);
    expect(stderr).toContain(`${output} is not complete (the last line is cut off)`);
  });
});
