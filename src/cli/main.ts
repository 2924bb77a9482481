#!/usr/bin/env node
// The command of the package: runs what is asked for, and ends with a code that says how it went.
import { CommanderError } from 'commander';
import { EXIT, Failure } from './exit.js';
import { createProgram } from './program.js';

// `… stats --watch | head -1`: whoever read has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
});

try {
  await createProgram().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
  else {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof Failure ? error.exitCode : EXIT.failed;
  }
}
