// Runs a document's shell commands in order, and compares their output with the document.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

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
