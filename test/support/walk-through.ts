// Runs a document's shell commands in order, and compares their output with the document.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ROOT } from './built-proxy.js';

interface Step {
  commands: string;
  /** Expected output; `…` matches anything. */
  shown: RegExp | undefined;
}

/** Returns a document's command blocks, each with the output that follows. */
export const stepsOf = (markdown: string): Step[] =>
  [...markdown.matchAll(/^```sh\n([^]*?)^```\n(?:\n```text\n([^]*?)^```\n)?/gm)].map(
    ([, commands = '', shown]) => ({ commands, shown: shown === undefined ? undefined : pattern(shown) }),
  );

const pattern = (shown: string): RegExp =>
  new RegExp(
    `^\\s*${shown
      .trim()
      .split('\n')
      .map((line) => line.split('…').map(escape).join('.*'))
      .join('\\s*')}\\s*$`,
  );

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Creates a shell that keeps its state between calls. */
export function createShell(): (commands: string) => Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const memory = join(folder, 'set.sh');
  writeFileSync(memory, '');
  return (commands) =>
    new Promise((resolve) => {
      const script = `source ${memory}\n${commands}\n{ export -p; declare -f; } > ${memory}`;
      const child = spawn('bash', ['--norc', '--noprofile', '-c', script], {
        env: { PATH: process.env['PATH'] ?? '' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => (output += text));
      }
      child.once('close', () => {
        resolve(output);
      });
    });
}

/**
 * Runs all steps of a page in a folder where the package's command is installed, and compares their output
 * with the page. Returns the number of compared steps.
 *
 * @param variables values to use instead of those that the page exports
 */
export async function walkThrough(page: string, variables: Record<string, string>): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  mkdirSync(join(folder, 'bin'));
  const shim = `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, 'dist/main.js')}' "$@"\n`;
  writeFileSync(join(folder, 'bin/handle-resolver-proxy'), shim, { mode: 0o755 });
  const shell = createShell();
  const set = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`);
  await shell([`export PATH=${folder}/bin:$PATH`, ...set].join('\n'));
  let compared = 0;
  for (const { commands, shown } of stepsOf(page)) {
    const here = commands.replace(/^export (\w+)=[^$].*$/gm, (line, name: string) =>
      name in variables ? '' : line,
    );
    const said = await shell(`cd ${folder}\n${here}`);
    if (shown === undefined) continue;
    expect(said, commands).toMatch(shown);
    compared += 1;
  }
  return compared;
}
