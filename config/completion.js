// Generates the completion scripts of bash, zsh and fish from the command's definition.

/** @param {import('commander').Command} program @returns {Record<string, string>} the script of each shell */
export function completionScripts(program) {
  const commands = [...program.commands.map(describeCommand), helpOf(program)];
  return { bash: bashScript(commands), zsh: zshScript(commands), fish: fishScript(commands) };
}

function describeCommand(command) {
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.description(),
    options: command.options.map(describeOption),
    takesFile: argument?.name() === 'file',
    words: argument?.argChoices ?? [],
  };
}

/** `value`: what the option takes, such as `file`; undefined for a switch. */
const describeOption = ({ long, flags, description, argChoices }) => ({
  long,
  description,
  value: /<(\w+)>/.exec(flags)?.[1],
  choices: argChoices,
});

/** The command `help`, which commander adds. */
const helpOf = (program) => ({
  name: 'help',
  description: 'display help for command',
  options: [],
  takesFile: false,
  words: [...program.commands.map((command) => command.name()), 'help'],
});

const takesPath = ({ value }) => value === 'file' || value === 'folder';

/** Returns the cases of bash for the options that take a value: paths, choices, or anything else. */
function bashValues(commands) {
  const taking = commands.flatMap(({ name, options }) =>
    options
      .filter(({ value }) => value !== undefined)
      .map((option) => ({ ...option, pattern: `'${name} ${option.long}'` })),
  );
  const patternsOf = (options) => options.map(({ pattern }) => pattern).join(' | ');
  const choosing = taking.filter(({ choices }) => choices);
  const others = taking.filter((option) => !option.choices && !takesPath(option));
  return [
    `    ${patternsOf(taking.filter(takesPath))}) _handle_resolver_proxy_files "$current"; return ;;`,
    ...choosing.map(
      ({ pattern, choices }) =>
        `    ${pattern}) COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$current")); return ;;`,
    ),
    `    ${patternsOf(others)}) return ;;`,
  ].join('\n');
}

function bashScript(commands) {
  return `# Completion of handle-resolver-proxy in bash 3.2 and later. To try: source <(handle-resolver-proxy completion bash)
_handle_resolver_proxy() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}"
  local options='' arguments=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    command='' previous=''
  fi
  case "$command $previous" in
${bashValues(commands)}
  esac
  case "$command" in
    '') options='--version --help -V -h' arguments='${commands.map(({ name }) => name).join(' ')}' ;;
${commands.map(bashCommand).join('\n')}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$arguments" -- "$current")) ;;
  esac
}
_handle_resolver_proxy_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
complete -F _handle_resolver_proxy handle-resolver-proxy
`;
}

function bashCommand({ name, options, takesFile, words }) {
  const shown = `options='${[...options.map(({ long }) => long), '--help'].join(' ')}'`;
  const offered = words.length === 0 ? '' : ` arguments='${words.join(' ')}'`;
  if (!takesFile) return `    ${name}) ${shown}${offered} ;;`;
  return `    ${name})
      case "$current" in -*) ;; *) _handle_resolver_proxy_files "$current"; return ;; esac
      ${shown}
      ;;`;
}

function zshScript(commands) {
  return `#compdef handle-resolver-proxy
# Completion of handle-resolver-proxy in zsh. To try: source <(handle-resolver-proxy completion zsh)
# To install, copy this file into a folder of $fpath as _handle-resolver-proxy.
_handle-resolver-proxy() {
  local context state line
  local -a commands help
  help=('(-h --help)'{-h,--help}'[display help for command]')
  commands=(
${commands.map(({ name, description }) => `    '${name}:${description}'`).join('\n')}
  )
  _arguments -C $help '(-V --version)'{-V,--version}'[print the version]' '1:command:->command' '*::argument:->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
${commands.map(zshCommand).join('\n')}
      esac
      ;;
  esac
}
if [ "$funcstack[1]" = _handle-resolver-proxy ]; then
  _handle-resolver-proxy "$@"
else
  compdef _handle-resolver-proxy handle-resolver-proxy
fi
`;
}

function zshCommand({ name, options, takesFile, words }) {
  const specs = options.map(
    (option) => `'${option.long}[${option.description.replaceAll(':', '\\:')}]${zshValue(option)}'`,
  );
  if (takesFile) specs.push(`'*:argument:_files'`);
  if (words.length > 0) specs.push(`'*:argument:(${words.join(' ')})'`);
  return `        ${name})
          ${['_arguments $help', ...specs].join(' \\\n            ')}
          ;;`;
}

function zshValue({ value, choices }) {
  if (value === undefined) return '';
  if (choices) return `:value:(${choices.join(' ')})`;
  if (value === 'folder') return ':folder:_files -/';
  return value === 'file' ? ':file:_files' : ':value: ';
}

function fishScript(commands) {
  const first = 'complete -c handle-resolver-proxy -n __fish_use_subcommand';
  const lines = commands.map(({ name, description }) => `${first} -a ${name} -d '${description}'`);
  return `# Completion of handle-resolver-proxy in fish. To try: handle-resolver-proxy completion fish | source
complete -c handle-resolver-proxy -f

${lines.join('\n')}
${first} -s V -l version -d 'print the version'
complete -c handle-resolver-proxy -s h -l help -d 'display help for command'

${commands.map(fishCommand).join('\n\n')}
`;
}

function fishCommand({ name, options, takesFile, words }) {
  const start = `complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from ${name}'`;
  return [
    ...options.map(
      (option) => `${start} -l ${option.long.slice(2)}${fishValue(option)} -d '${option.description}'`,
    ),
    ...(takesFile ? [`${start} -F`] : []),
    ...(words.length > 0 ? [`${start} -a '${words.join(' ')}'`] : []),
  ].join('\n');
}

function fishValue({ value, choices }) {
  if (value === undefined) return '';
  if (choices) return ` -x -a '${choices.join(' ')}'`;
  return value === 'file' || value === 'folder' ? ' -r -F' : ' -x';
}
