// Generates the manual page from the command's definition: subcommands, arguments, options, variables.

/** @param {import('commander').Command} program */
export function manPage(program) {
  const name = program.name();
  const lines = [
    `.TH ${escape(name.toUpperCase())} 1 "" "${escape(`${name} ${program.version()}`)}"`,
    '.SH NAME',
    `${escape(name)} \\- ${escape(uncapitalised(program.description()))}`,
    '.SH SYNOPSIS',
    `.B ${escape(name)}`,
    '.RI [ command ]',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    escape(program.description()),
    'Without a command it starts the proxy. A configuration file needs only the keys that differ from their defaults;',
    escape('config/default.yaml in the package describes each key and its variable.'),
    '.SH COMMANDS',
    ...program.commands.flatMap((command) => commandLines(name, command)),
    '.SH ENVIRONMENT',
    ...definitions(variables(program)),
    '.SH EXIT STATUS',
    ...definitions([
      ['0', 'Success.'],
      ['1', 'Failure.'],
      ['2', 'Invalid usage or configuration.'],
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function commandLines(name, command) {
  const given = command.registeredArguments;
  const usage = [name, command.name(), ...given.map(shownArgument), '[options]'].join(' ');
  return [
    `.SS ${escape(command.name())}`,
    `.B ${escape(usage)}`,
    '.PP',
    `${escape(capitalised(command.description()))}.`,
    ...definitions([
      ...given.map((argument) => [argument.name(), argumentText(argument)]),
      ...command.options.map((option) => [option.flags, optionText(option)]),
    ]),
  ];
}

function shownArgument(argument) {
  const shown = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${shown}>` : `[${shown}]`;
}

const argumentText = ({ description, argChoices }) =>
  `${capitalised(description || 'one of these')}${argChoices ? `: ${argChoices.join(', ')}` : ''}.`;

function optionText({ description, defaultValue, envVar, mandatory }) {
  const notes = [
    ...(mandatory ? ['Required.'] : []),
    ...(defaultValue === undefined ? [] : [`Default: ${defaultValue}.`]),
    ...(envVar === undefined ? [] : [`Variable: ${envVar}.`]),
  ];
  return [`${capitalised(description)}.`, ...notes].join(' ');
}

/** Lists the variables of options, and those for tokens and passwords, which are never arguments. */
function variables(program) {
  const options = program.commands.flatMap((command) => command.options);
  const named = new Map(
    options.flatMap(({ envVar, long, description }) =>
      envVar === undefined ? [] : [[envVar, `${capitalised(description)}, instead of ${long}.`]],
    ),
  );
  return [
    ...named,
    ['ADMIN_TOKEN', 'Token of the admin listener (admin.token).'],
    ['HANDLE_PASSWORD', 'Password of the user of warm --prefix.'],
    ['CONFIG', 'Configuration file of serve, check-config and site-record.'],
  ].sort(([one], [other]) => one.localeCompare(other));
}

const definitions = (rows) => rows.flatMap(([term, text]) => ['.TP', `.B ${escape(term)}`, escape(text)]);

const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const uncapitalised = (text) => text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, '');

/**
 * Escapes text for roff, where a backslash starts an escape, a bare hyphen becomes a dash, and a leading dot
 * or quote starts a request.
 */
const escape = (text) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1')
    .replaceAll('…', '...');
