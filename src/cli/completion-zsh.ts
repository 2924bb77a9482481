// Completion for zsh: to be sourced, or found in $fpath as `_handle-resolver-proxy`.
import type { CommandShape, OptionShape, ProgramShape, Value } from './completion-shape.js';

export function zshScript(program: ProgramShape): string {
  const name = `_${program.name}`;
  return `#compdef ${program.name}
# Completion of ${program.name} in zsh. To try: source <(${program.name} completion zsh)
${name}() {
  local context state line
  local -a commands
  commands=(
${program.commands.map((command) => `    ${quoted(`${command.name}:${command.description}`)}`).join('\n')}
  )
  _arguments -C ${specs(program).join(' ')} '1:command:->command' '*::argument:->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
${program.commands.map(caseOf).join('\n')}
      esac
      ;;
  esac
}
if [ "$funcstack[1]" = ${name} ]; then
  ${name} "$@"
else
  compdef ${name} ${program.name}
fi
`;
}

function caseOf(command: CommandShape): string {
  const { argument } = command;
  // Not where anything may stand: a message beside the options keeps zsh from completing the one that fits.
  const rest =
    argument === undefined || argument.kind === 'free' ? [] : [quoted(`*:argument:${action(argument)}`)];
  const lines = [...specs(command), ...rest].map((spec) => `            ${spec}`);
  return [`        ${command.name})`, '          _arguments \\', lines.join(' \\\n'), '          ;;'].join(
    '\n',
  );
}

const specs = ({ options }: CommandShape): string[] =>
  options.flatMap(({ flags, description, value }: OptionShape) =>
    flags.map((flag) => {
      const told = description.replaceAll(/[[\]:\\]/g, (char) => `\\${char}`);
      const end = value === undefined ? '' : `:value:${action(value)}`;
      return quoted(`(${flags.join(' ')})${flag}[${told}]${end}`);
    }),
  );

function action(value: Value): string {
  if (value.kind === 'file') return '_files';
  // One space: there is something to write, but nothing to offer.
  return value.kind === 'choice' ? `(${value.choices.join(' ')})` : ' ';
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
