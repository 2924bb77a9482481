// Runs the curl commands of src/v2/README.md against the demo.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startProgram } from '../support/built-proxy.js';

const END = '\n(end of answer)\n';
/** A command, the status of its response, and a part of the body. */
const ANSWERED = /^(curl .*\S) +# (\d{3})(?: (.+))?$/;

const readme = readFileSync(new URL('../../src/v2/README.md', import.meta.url), 'utf8');
const [, block = ''] = /^```sh\n(.*?)^```$/ms.exec(readme) ?? [];
const lines = block.split('\n').slice(0, -1);
const expected = lines.flatMap((line) => {
  const [, command, status, part = ''] = ANSWERED.exec(line) ?? [];
  return command === undefined ? [] : [{ command, status, part }];
});

/** Starts what `npm run demo` starts after the build, and returns its URL. */
async function startDemo(): Promise<string> {
  const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
  const { stdout } = startProgram(['dist-demo/test/handle-server/main.js'], ports);
  await expect.poll(stdout, { timeout: 20_000 }).toContain('Press Ctrl-C');
  return /http:\/\/127\.0\.0\.1:\d+/.exec(stdout())![0];
}

/** Runs the block in one shell: later lines use variables of earlier ones. */
function run(url: string): string[] {
  const script = lines
    .map((line) => line.replace(ANSWERED, `$1 -s -w '\\n%{http_code}${END}'`))
    .join('\n')
    .replaceAll('http://127.0.0.1:8080', url);
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split(END).slice(0, -1);
}

test('every command of the block gets the response behind it', async () => {
  expect(expected.length).toBeGreaterThan(10);
  const answers = run(await startDemo());
  expect(answers).toHaveLength(expected.length);
  expected.forEach(({ command, status, part }, at) => {
    expect(`${command}\n${answers[at]}`).toMatch(new RegExp(`\\n${status}$`));
    expect(answers[at], command).toContain(part);
  });
});
