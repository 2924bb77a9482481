// The manual page and the completion scripts match the command definitions.
import { describe, expect, test } from 'vitest';
import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.js';
import { itWithProgram, runProgram } from '../support/programs.js';
import { readDocument } from '../support/markdown.js';

const { manPage } = (await import(new URL('../../config/man-page.js', import.meta.url).href)) as {
  manPage: (program: Command) => string;
};

const { completionScripts } = (await import(new URL('../../config/completion.js', import.meta.url).href)) as {
  completionScripts: (program: Command) => Record<string, string>;
};

const FILE = 'config/man/handle-resolver-proxy.1';
const page = readDocument(FILE);

describe('manual page', () => {
  test('is up to date (`npm run docs` writes it)', () => {
    expect(page).toBe(manPage(createProgram()));
  });

  test('is in the package, and lists every command with its options', () => {
    const { man, files } = JSON.parse(readDocument('package.json')) as { man: string[]; files: string[] };
    // npm 11 installs no page that is given as a string.
    expect([man, files]).toEqual([[FILE], expect.arrayContaining(['config/man'])]);
    const shown = page.replaceAll('\\-', '-');
    for (const command of createProgram().commands) {
      expect(shown).toContain(`.SS ${command.name()}\n`);
      for (const { flags } of command.options) expect(shown).toContain(`.B ${flags}\n`);
    }
  });

  itWithProgram('groff', 'is typeset without a warning', () => {
    // `-z` prints diagnostics only.
    expect(runProgram('groff', ['-man', '-Tutf8', '-ww', '-z', FILE])).toEqual({ code: 0, output: '' });
  });
});

describe('completion scripts', () => {
  test.each(Object.entries(completionScripts(createProgram())))(
    'are up to date for %s (`npm run docs` writes them)',
    (shell, script) => {
      expect(readDocument(`config/completion/handle-resolver-proxy.${shell}`)).toBe(script);
    },
  );
});
