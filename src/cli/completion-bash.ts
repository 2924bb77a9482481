// Completion for bash 3.2 and later, without the package bash-completion.
import type { CommandShape, ProgramShape, Value } from './completion-shape.js';

export function bashScript(program: ProgramShape): string {
  const name = `_${program.name.replaceAll('-', '_')}`;
  const names = program.commands.map((command) => command.name);
  return `# Completion of ${program.name} in bash. To try: source <(${program.name} completion bash)
${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}"
  local options='' arguments=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    command='' previous=''
  fi
  case "$command" in
    '') options='${flagsOf(program)}' arguments='${names.join(' ')}' ;;
${program.commands.map(caseOf).join('\n')}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$arguments" -- "$current")) ;;
  esac
}
@files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
complete -F ${name} ${program.name}
`.replaceAll('@files', `${name}_files`);
}

const flagsOf = ({ options }: CommandShape): string => options.flatMap(({ flags }) => flags).join(' ');

function caseOf(command: CommandShape): string {
  const withValue = command.options.flatMap(({ flags, value }) =>
    value === undefined ? [] : [`        ${flags.join('|')}) ${offer(value)}return ;;`],
  );
  return [
    `    ${command.name})`,
    ...(withValue.length === 0 ? [] : ['      case "$previous" in', ...withValue, '      esac']),
    `      options='${flagsOf(command)}'`,
    ...(command.argument === undefined ? [] : argumentLines(command.argument)),
    '      ;;',
  ].join('\n');
}

function offer(value: Value): string {
  if (value.kind === 'file') return '@files "$current"; ';
  return value.kind === 'choice'
    ? `COMPREPLY=($(compgen -W '${value.choices.join(' ')}' -- "$current")); `
    : '';
}

function argumentLines(value: Value): string[] {
  if (value.kind === 'file') return ['      case "$current" in -*) ;; *) @files "$current"; return ;; esac'];
  return value.kind === 'choice' ? [`      arguments='${value.choices.join(' ')}'`] : [];
}
