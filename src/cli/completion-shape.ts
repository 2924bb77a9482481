// What a shell has to know of the commands to complete them: read from the definitions that also parse them.
import type { Argument, Command, Option } from 'commander';

/** What may stand for an option's value or an argument. */
export type Value = { kind: 'file' } | { kind: 'choice'; choices: readonly string[] } | { kind: 'free' };

export interface OptionShape {
  /** `-V`, `--version` */
  flags: string[];
  description: string;
  /** Undefined: the option stands alone. */
  value: Value | undefined;
}

export interface CommandShape {
  name: string;
  description: string;
  options: OptionShape[];
  /** What its first argument may be; what follows is of the same kind. */
  argument: Value | undefined;
}

export interface ProgramShape extends CommandShape {
  commands: CommandShape[];
}

export function shapeOf(program: Command): ProgramShape {
  const commands = program.createHelp().visibleCommands(program);
  const names = commands.map((command) => command.name());
  return {
    ...shapeOfCommand(program),
    commands: commands.map(shapeOfCommand).map((shape) =>
      // Commander's own: its argument is the name of a command, which it does not say itself.
      shape.name === 'help' ? { ...shape, argument: { kind: 'choice', choices: names } } : shape,
    ),
  };
}

function shapeOfCommand(command: Command): CommandShape {
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.description(),
    options: command.createHelp().visibleOptions(command).map(shapeOfOption),
    argument: argument && valueOf(argument, argument.name()),
  };
}

function shapeOfOption(option: Option): OptionShape {
  const { short, long, description, flags } = option;
  const [, valueName] = /<(.+)>/.exec(flags) ?? [];
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description,
    value: valueName === undefined ? undefined : valueOf(option, valueName),
  };
}

function valueOf({ argChoices }: Pick<Argument, 'argChoices'>, name: string): Value {
  if (argChoices !== undefined) return { kind: 'choice', choices: argChoices };
  return { kind: name === 'file' ? 'file' : 'free' };
}
