// The curl commands of README.md and of three pages of the guide, run against the demo.
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
  text: string;
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
  const text = stdout();
  const [, url = ''] = /(http:\S+)\/api\/handles/.exec(text) ?? [];
  const [, adminUrl = ''] = /Status page +(http:\S+)\/$/m.exec(text) ?? [];
  return { url, adminUrl, text };
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

describe('the demo', () => {
  test('prints the addresses of a page, of the status page and of the API, and commands that can be repeated', async () => {
    const { text } = await startDemo();
    const pages = [...text.matchAll(/^  [A-Z][\w ]+? {2,}(http:\S+)$/gm)].map(([, page = '']) => page);
    expect(pages.map((page) => new URL(page).pathname)).toEqual(['/21.T11998/DEMO', '/openapi', '/']);
    for (const page of pages) {
      const { status, headers } = await fetch(page, { headers: { Accept: 'text/html' } });
      expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
    }
    const commands = text.split('\n').filter((line) => line.startsWith('  curl '));
    // Also with another URL, as a visitor tries next: nobody can change a record without HS_ADMIN.
    for (const url of ['https://example.org/mine', 'https://example.org/other']) {
      const outputs = commands.map((command) =>
        execFileSync('bash', ['-c', command.replace('https://example.org/mine', url)], { encoding: 'utf8' }),
      );
      expect(outputs).toEqual([
        expect.stringContaining('Cache-Status: handle-resolver-proxy; '),
        expect.stringContaining('"responseCode":1,'),
        expect.stringContaining(url),
      ]);
    }
  });
});

describe('README commands', () => {
  test.each([
    ['README.md', 5],
    ['config/redirects.md', 5],
    ['config/api.md', 2],
    ['config/epic-v2.md', 14],
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
