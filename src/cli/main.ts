// The command `handle-resolver-proxy`: runs a subcommand and sets the exit code.
import { CommanderError } from 'commander';
import { createProgram } from './program.js';
import { EXIT, Failure, printNote } from './terminal.js';

/** Adds the default command `serve` to arguments such as `--config proxy.yaml`. */
function withCommand(args: readonly string[]): readonly string[] {
  const [first = '--'] = args;
  const isOption = first.startsWith('-') && !['-h', '--help', '-V', '--version'].includes(first);
  return isOption ? ['serve', ...args] : args;
}

const args = withCommand(process.argv.slice(2));

// Exits successfully if the reader closes the pipe, as in `… stats --watch | head -1`. The proxy serves without its log.
if (args[0] !== 'serve')
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
  });

try {
  await createProgram().parseAsync(args, { from: 'user' });
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
  else {
    printNote(error instanceof Error ? error.message : String(error));
    process.exitCode = error instanceof Failure ? error.exitCode : EXIT.failed;
  }
}
