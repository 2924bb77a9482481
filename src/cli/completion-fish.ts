// Completion for fish: each word it may offer is a line of its own.
import type { CommandShape, ProgramShape, Value } from './completion-shape.js';

export function fishScript(program: ProgramShape): string {
  const start = `complete -c ${program.name}`;
  const names = program.commands.map((command) => command.name);
  const none = `not __fish_seen_subcommand_from ${names.join(' ')}`;
  const commands = program.commands.map(
    ({ name, description }) => `${start} -n ${quoted(none)} -a ${name} -d ${quoted(description)}`,
  );
  const lines = [
    `# Completion of ${program.name} in fish. To try: ${program.name} completion fish | source`,
    `${start} -f`,
    ...commands,
    ...optionLines(program, `${start} -n ${quoted(none)}`),
    ...program.commands.flatMap((command) => {
      const within = `${start} -n ${quoted(`__fish_seen_subcommand_from ${command.name}`)}`;
      const argument = command.argument === undefined ? [] : argumentLine(command.argument, within);
      return [...optionLines(command, within), ...argument];
    }),
  ];
  return `${lines.join('\n')}\n`;
}

const optionLines = ({ options }: CommandShape, start: string): string[] =>
  options.map(({ flags, description, value }) => {
    const names = flags.map((flag) =>
      flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    const takes = value === undefined ? [] : [optionValue(value)];
    return [start, ...names, ...takes, `-d ${quoted(description)}`].join(' ');
  });

function optionValue(value: Value): string {
  if (value.kind === 'file') return '-r -F';
  return value.kind === 'choice' ? `-x -a ${quoted(value.choices.join(' '))}` : '-x';
}

function argumentLine(value: Value, start: string): string[] {
  if (value.kind === 'file') return [`${start} -F`];
  return value.kind === 'choice' ? [`${start} -a ${quoted(value.choices.join(' '))}`] : [];
}

const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, (char) => `\\${char}`)}'`;
