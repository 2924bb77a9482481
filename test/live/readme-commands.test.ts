// The curl commands of README.md and of three README files in src, run against the demo.
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { startProgram } from '../support/built-proxy.js';
import { readDocument, shellBlocks } from '../support/markdown.js';

const END = '\n(end of answer)\n';
/** Matches a command, its response status, and a part of its headers or body. */
const ANSWERED = /^(curl .*\S) +# (\d{3})(?: (.+))?$/;

interface Expected {
  command: string;
  status: string;
  part: string;
}

interface Demo {
  url: string;
  adminUrl: string;
}

const expectedOf = (block: string): Expected[] =>
  block.split('\n').flatMap((line) => {
    const [, command, status = '', part = ''] = ANSWERED.exec(line) ?? [];
    return command === undefined ? [] : [{ command, status, part }];
  });

/** Starts the same program as `npm run demo`, without building it. */
async function startDemo(): Promise<Demo> {
  const native = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' };
  const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', HANDLE_SERVER_PORT: '0', ...native };
  const { stdout } = startProgram(['dist-demo/main.js'], ports);
  await expect.poll(stdout).toContain('Press Ctrl-C');
  const [url = '', , adminUrl = ''] = [...stdout().matchAll(/http:\/\/127\.0\.0\.1:\d+/g)].map(
    ([found]) => found,
  );
  return { url, adminUrl };
}

/** Runs a block in one shell, because later lines use variables of earlier lines. */
function run(block: string, { url, adminUrl }: Demo): string[] {
  const script = block
    .split('\n')
    .map((line) => line.replace(ANSWERED, `$1 -s -w '\\n%{http_code}${END}'`))
    .join('\n')
    .replaceAll('http://127.0.0.1:8080', url)
    .replaceAll('http://127.0.0.1:9090', adminUrl);
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split(END).slice(0, -1);
}

describe('README commands', () => {
  test.each([
    ['README.md', 4],
    ['src/redirect/README.md', 5],
    ['src/plugins/batch/README.md', 2],
    ['src/v2/README.md', 14],
  ])('in %s get the documented responses', async (path, count) => {
    const block = shellBlocks(readDocument(path)).find((text) => expectedOf(text).length > 0) ?? '';
    const expected = expectedOf(block);
    expect(expected).toHaveLength(count);
    const answers = run(block, await startDemo());
    expect(answers).toHaveLength(count);
    expected.forEach(({ command, status, part }, at) => {
      expect(`${command}\n${answers[at]}`).toMatch(new RegExp(`\\n${status}$`));
      expect(answers[at], command).toContain(part);
    });
  });
});
