#!/usr/bin/env node
// Entry point: runs the subcommand that the arguments name, by default `serve`.
import { readFileSync } from 'node:fs';

// Before Node.js starts these threads, by default four; Node.js 20 starts them before. A disk that does not respond blocks
// one for each of log, changes, reports and snapshot, and none would be left for compression and DNS.
process.env['UV_THREADPOOL_SIZE'] ??= '8';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  engines: { node: string };
};

// An operator cannot change what a library uses; with `--trace-deprecation`, Node.js says what it is.
process.noDeprecation = !process.traceDeprecation;

const args = withCommand(process.argv.slice(2));
const obstacle = findObstacle();

// Every import is dynamic: of what an older Node.js lacks, it is a SyntaxError that names no version.
if (obstacle === undefined) {
  // The proxy starts without the parser of arguments when there is nothing to parse.
  if (args.length === 1 && args[0] === 'serve') await (await import('../app/run.js')).run();
  else await (await import('./program.js')).runCommand(args);
} else {
  process.stderr.write(`${obstacle}\n`);
  process.exitCode = 2;
}

/** Returns why the command cannot run here; undefined if it can. */
function findObstacle(): string | undefined {
  const [major = 0, minor = 0] = numbersOf(process.version);
  const [requiredMajor = 0, requiredMinor = 0] = numbersOf(engines.node);
  if (major < requiredMajor || (major === requiredMajor && minor < requiredMinor)) {
    const required = `Node.js ${requiredMajor}.${requiredMinor} or later is required`;
    return `${required}; ${process.execPath} is ${process.version.slice(1)}.`;
  }
  try {
    process.cwd();
    return undefined;
  } catch {
    const removed =
      'The working folder was removed: change to another one, such as with `cd /`, and start again.';
    // A library of the proxy asks for it when it is loaded.
    if (args[0] === 'serve') return removed;
    // Some commands need no folder, such as `purge`.
    process.cwd = () => {
      throw new Error(removed);
    };
    return undefined;
  }
}

function numbersOf(version: string): number[] {
  return (version.match(/\d+/g) ?? []).map(Number);
}

/** Adds the default command `serve` to arguments such as `--config proxy.yaml`. */
function withCommand(args: readonly string[]): readonly string[] {
  const [first = '--'] = args;
  const isOption = first.startsWith('-') && !['-h', '--help', '-V', '--version'].includes(first);
  return isOption ? ['serve', ...args] : args;
}
