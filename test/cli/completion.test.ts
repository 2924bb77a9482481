// Shell completion: the scripts are complete, and each shell offers matching words.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import { ROOT } from '../support/built-proxy.js';
import { itWithProgram, runProgram } from '../support/programs.js';

const [bash = '', zsh = '', fish = ''] = ['bash', 'zsh', 'fish'].map((shell) => {
  const args = ['dist/main.js', 'completion', shell];
  return spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' }).stdout;
});

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** Returns the completions that bash offers for the last of these words. */
function bashOffers(words: string[]): string[] {
  const input = `${bash}
COMP_WORDS=(handle-resolver-proxy ${words.map((word) => `'${word}'`).join(' ')})
COMP_CWORD=${words.length}
_handle_resolver_proxy
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { code, output } = runProgram('bash', ['--norc', '--noprofile'], input);
  expect(code).toBe(0);
  return linesOf(output);
}

const { commands } = createProgram();

describe('shell completion', () => {
  test.each(commands.map((command) => [command.name(), command] as const))(
    'includes each option of %s with its description',
    (name, command) => {
      const { options } = command;
      const description = command.description();
      const fishLines = linesOf(fish).filter((line) => line.includes(`_from ${name}' `));
      const [, zshCase = ''] =
        new RegExp(`^ +${name}\\)\n([^]*?) ;;`, 'm').exec(zsh.replaceAll('\\:', ':')) ?? [];
      expect(fish).toContain(`-a ${name} -d '${description}'`);
      expect(zsh).toContain(`'${name}:${description}'`);
      expect(bashOffers([name, '--'])).toEqual([...options.map(({ long }) => long), '--help']);
      expect(fishLines.filter((line) => line.includes(' -l '))).toHaveLength(options.length);
      expect(zshCase.match(/'--/g) ?? []).toHaveLength(options.length);
      for (const { long, description: text } of options) {
        expect(
          fishLines.some((line) => line.includes(`-l ${long?.slice(2)} `) && line.endsWith(`-d '${text}'`)),
        ).toBe(true);
        expect(zshCase).toContain(`'${long}[${text}]`);
      }
    },
  );

  test.each<[words: string[], ...offered: string[]]>([
    [['w'], 'warm'],
    [['--v'], '--version'],
    [['resolve', '--p'], '--proxy', '--plain'],
    [['completion', ''], 'bash', 'zsh', 'fish'],
    [['help', 'st'], 'stats'],
    [['warm', 'package.j'], 'package.json'],
    [['warm', '--state', 'tsconfig.j'], 'tsconfig.json'],
    [['import', '--output', 'tsconfig.j'], 'tsconfig.json'],
    [['register', '--key-size', '4'], '4096'],
    [['warm', '--rate', '']],
    [['purge', '21.T']],
  ])('offers the matching words in bash after %j', (words, ...offered) => {
    expect(bashOffers(words)).toEqual(offered);
  });

  itWithProgram('fish', 'offers matching commands, options and files in fish', () => {
    const offers = (line: string): string[] => {
      const { output } = runProgram('fish', ['--no-config', '-c', `${fish}\ncomplete -C '${line}'`]);
      return linesOf(output).map((text) => text.split('\t')[0] ?? '');
    };
    expect(offers('handle-resolver-proxy w')).toEqual(['warm']);
    expect(offers('handle-resolver-proxy resolve --p')).toEqual(['--plain', '--proxy']);
    expect(offers('handle-resolver-proxy completion ')).toEqual(['bash', 'fish', 'zsh']);
    expect(offers('handle-resolver-proxy warm package.j')).toEqual(['package.json']);
    expect(offers('handle-resolver-proxy stats package.j')).toEqual([]);
  });

  /** zsh completes only on a terminal, which zpty provides. The command prints its arguments. */
  itWithProgram('zsh', 'offers commands, options, choices and files in zsh', () => {
    const folder = mkdtempSync(join(tmpdir(), 'proxy-zsh-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    writeFileSync(join(folder, 'completion'), zsh);
    writeFileSync(
      join(folder, 'start'),
      `autoload -Uz compinit; compinit -u -D
zstyle ':completion:*' insert-tab false
source ${folder}/completion
handle-resolver-proxy() { print -r -- "called <$*>" }`,
    );
    const lines = ['wa', 'resolve --pl', 'completion z', 'warm package.j'];
    const driver = `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'source ${folder}/start'
${lines.map((line) => `zpty -w shell $'handle-resolver-proxy ${line}\\t'`).join('\n')}
zpty -w shell exit
while zpty -r shell line; do print -rn -- "$line"; done`;
    const { output } = runProgram('zsh', ['-f'], driver);
    const called = [...output.matchAll(/called <(.*?) ?>/g)].map(([, words]) => words);
    expect(called).toEqual(['warm', 'resolve --plain', 'completion zsh', 'warm package.json']);
  });
});
