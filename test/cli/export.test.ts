// Interrupted exports: a partial file never counts as complete, and the next run resumes it.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { follow, startProgram } from '../support/built-proxy.js';
import { cli } from '../support/cli.js';
import { newFolder } from '../support/folder.js';

const lineOf = (at: number, from = 'now'): string => `{"handle":"21.T1/${at}","values":["${from}"]}\n`;
const linesOf = (first: number, end: number, from?: string): string =>
  Array.from({ length: end - first }, (_, at) => lineOf(first + at, from)).join('');

/** Starts an admin listener that responds to each export with `answer`. Returns its URL. */
async function adminWith(answer: (res: ServerResponse) => void): Promise<string> {
  const server = createServer((_req, res) => {
    answer(res.setHeader('Content-Type', 'application/x-ndjson'));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function linesIn(file: string): string {
  const bytes = readFileSync(file);
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
}

const argsOf = (output: string, admin: string): string[] => [
  'export',
  '--prefix',
  '21.T1',
  '--output',
  output,
  '--admin',
  admin,
];

describe('interrupted export', () => {
  test('resumes after kill -9, and contains current records and those that the proxy has since lost', async () => {
    const output = join(newFolder(), 'records.ndjson');
    const partial = `${output}.21.T1.1.partial`;
    const stalled = await adminWith((res) => res.write(linesOf(0, 100, 'before')));
    const { child, exited } = startProgram(['dist/main.js', ...argsOf(output, stalled)], {});
    await expect
      .poll(() => existsSync(partial) && readFileSync(partial, 'utf8'))
      .toBe(linesOf(0, 100, 'before'));
    child.kill('SIGKILL');
    await exited;
    expect(existsSync(output)).toBe(false);
    // Simulates a process killed in the middle of a line.
    writeFileSync(partial, lineOf(100).slice(0, 25), { flag: 'a' });
    const whole = await adminWith((res) => res.end(linesOf(50, 200)));
    expect(await cli(argsOf(output, whole))).toMatchObject({
      code: 0,
      stderr: '200 records exported, 50 of them by an earlier run\n',
    });
    expect(readFileSync(output, 'utf8')).toBe(linesOf(50, 200) + linesOf(0, 50, 'before'));
    expect(readdirSync(join(output, '..'))).toEqual(['records.ndjson']);
  });

  test.each(['records.ndjson', 'records.ndjson.gz'])(
    'is incomplete when the connection breaks, and resumes (%s)',
    async (name) => {
      const output = join(newFolder(), name);
      const partial = `${output}.21.T1.1.partial`;
      const responses: ServerResponse[] = [];
      const broken = await adminWith((res) => {
        responses.push(res);
        res.write(linesOf(0, 20_000, 'before'));
      });
      const running = cli(argsOf(output, broken));
      await expect.poll(() => existsSync(partial) && statSync(partial).size > 0).toBe(true);
      for (const response of responses) response.destroy();
      const { code, stderr } = await running;
      expect([code, existsSync(output)]).toEqual([1, false]);
      expect(stderr).toMatch(/ is not complete \(.+\); run the same command to continue/);

      const whole = await adminWith((res) => res.end(linesOf(0, 10, 'changed')));
      const continued = await cli(argsOf(output, whole));
      const kept = Number(/(\d+) of them by an earlier run/.exec(continued.stderr)?.[1]);
      expect(kept).toBeGreaterThan(0);
      expect(linesIn(output)).toBe(linesOf(0, 10, 'changed') + linesOf(10, 10 + kept, 'before'));
      expect(readdirSync(join(output, '..'))).toEqual([name]);
    },
  );

  test.each([
    ['more than an hour ago', -3601],
    ['the future, because the clock was set back', 2 * 3600],
  ])('does not reuse a run from %s', async (_, seconds) => {
    const output = join(newFolder(), 'records.ndjson');
    const partial = `${output}.21.T1.1.partial`;
    writeFileSync(partial, linesOf(0, 100, 'before'));
    const writtenAt = Date.now() / 1000 + seconds;
    utimesSync(partial, writtenAt, writtenAt);
    const whole = await adminWith((res) => res.end(linesOf(50, 200)));
    expect(await cli(argsOf(output, whole))).toMatchObject({ code: 0 });
    expect(readFileSync(output, 'utf8')).toBe(linesOf(50, 200));
    expect(readdirSync(join(output, '..'))).toEqual(['records.ndjson']);
  });

  test('reuses the readable part of a truncated compressed file', async () => {
    const output = join(newFolder(), 'records.ndjson.gz');
    writeFileSync(`${output}.21.T1.1.partial`, gzipSync(linesOf(0, 5000, 'before')).subarray(0, -20));
    const whole = await adminWith((res) => res.end(linesOf(0, 5000)));
    expect(await cli(argsOf(output, whole))).toMatchObject({ code: 0 });
    const lines = gunzipSync(readFileSync(output)).toString().trimEnd().split('\n');
    expect(new Set(lines.map((line) => (JSON.parse(line) as { handle: string }).handle)).size).toBe(5000);
    expect(lines).toHaveLength(5000);
  });

  test.each(['records.ndjson', 'records.ndjson.gz'])(
    'reports a file that reaches its size limit in one sentence (%s)',
    async (name) => {
      const output = join(newFolder(), name);
      const value = (): string => randomBytes(300).toString('base64');
      const admin = await adminWith((res) => {
        let sent = 0;
        // The response is endless, so the command must stop by itself.
        const more = setInterval(() => {
          if (!res.writableNeedDrain)
            for (let times = 0; times < 50; times++) res.write(lineOf(sent++, value()));
        }, 0);
        res.once('close', () => {
          clearInterval(more);
        });
      });
      const script = `ulimit -f 100; exec "${process.execPath}" dist/main.js "$@"`;
      const shell = spawn('sh', ['-c', script, 'sh', ...argsOf(output, admin)], {
        env: {},
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const { exited, stderr } = follow(shell);
      expect(await exited).toEqual({ code: 1, signal: null });
      // On a slow machine, lines of progress precede it.
      expect(stderr().trimEnd().split('\n').at(-1)).toBe(
        `${output} is not complete (EFBIG: file too large, write); run the same command to continue`,
      );
    },
  );
});
