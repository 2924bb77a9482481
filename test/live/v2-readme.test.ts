// The README's section on ePIC v2: its curl lines, run as they stand there before the demo.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { readme } from '../support/markdown.js';
import { startProgram } from '../support/built-proxy.js';

const END = '\n(end of answer)\n';
/** A command with what it is answered: the status, and a part of the answer. */
const ANSWERED = /^(curl .*\S) +# (\d{3})(?: (.+))?$/;

const [, block = ''] = /^## ePIC v2$.*?^```sh\n(.*?)^```$/ms.exec(readme()) ?? [];
const lines = block.split('\n').slice(0, -1);
const promised = lines.flatMap((line) => {
  const [, command, status, part = ''] = ANSWERED.exec(line) ?? [];
  return command === undefined ? [] : [{ command, status, part }];
});

/** What `npm run demo` starts after the build; the address that it names. */
async function startDemo(): Promise<string> {
  const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
  const { stdout } = startProgram(['dist-demo/test/handle-server/main.js'], ports);
  await expect.poll(stdout, { timeout: 20_000 }).toContain('Press Ctrl-C');
  return /http:\/\/127\.0\.0\.1:\d+/.exec(stdout())![0];
}

/** The whole block in one shell, because its lines build on each other. */
function run(url: string): string[] {
  const script = lines
    .map((line) => line.replace(ANSWERED, `$1 -s -w '\\n%{http_code}${END}'`))
    .join('\n')
    .replaceAll('http://127.0.0.1:8080', url);
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split(END).slice(0, -1);
}

test('every command of the block is answered as it says', async () => {
  expect(promised.length).toBeGreaterThan(10);
  const answers = run(await startDemo());
  expect(answers).toHaveLength(promised.length);
  promised.forEach(({ command, status, part }, at) => {
    expect(`${command}\n${answers[at]}`).toMatch(new RegExp(`\\n${status}$`));
    expect(answers[at], command).toContain(part);
  });
});
