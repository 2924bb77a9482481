// The command `handle-resolver-proxy`: runs the subcommand that the arguments name, by default `serve`.

/** Adds the default command `serve` to arguments such as `--config proxy.yaml`. */
function withCommand(args: readonly string[]): readonly string[] {
  const [first = '--'] = args;
  const isOption = first.startsWith('-') && !['-h', '--help', '-V', '--version'].includes(first);
  return isOption ? ['serve', ...args] : args;
}

const args = withCommand(process.argv.slice(2));

// The proxy starts without the parser of arguments when there is nothing to parse.
if (args.length === 1 && args[0] === 'serve') await (await import('../app/run.js')).run();
else await (await import('./program.js')).runCommand(args);
