// Every command with its arguments and options; what each does is in a file of its own.
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { type BenchOptions, bench } from './bench.js';
import { checkConfig } from './check-config.js';
import { SHELLS, type Shell, completionScript } from './completion.js';
import { purge, type PurgeOptions } from './purge.js';
import { type ResolveOptions, resolve } from './resolve.js';
import { type StatsOptions, stats } from './stats.js';
import { packageVersion } from './version.js';
import { type WarmOptions, warm } from './warm.js';

const EXIT_CODES =
  '\nExit codes: 0 done · 1 something failed · 2 wrong usage, or a configuration that cannot be used.';

export function createProgram(): Command {
  const program = new Command('handle-resolver-proxy')
    .description('A caching resolver proxy for persistent identifiers of the Handle System.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .addHelpText('afterAll', EXIT_CODES)
    .exitOverride();
  addServing(program);
  addAsking(program);
  addWarm(program);
  addBench(program);
  addCompletion(program);
  return program;
}

function addServing(program: Command): void {
  program
    .command('serve')
    .description('serve, with the configuration of the environment and the file named by CONFIG')
    // Only then: all the other commands start in half the time without the whole proxy.
    .action(async () => (await import('../process/start.js')).start());
  program
    .command('check-config')
    .description('print the configuration in effect, secrets masked, and where each value comes from')
    .option('--json', 'as JSON')
    .action((options: { json?: boolean }) => {
      checkConfig(options);
    });
}

function addAsking(program: Command): void {
  atAdmin(atProxy(program.command('resolve').argument('<handle>')))
    .description('resolve a handle through the proxy and show what the cache knows of it')
    .addOption(new Option('--direct <url>', 'ask this Handle server instead of the proxy').argParser(baseUrl))
    .addOption(new Option('--json', 'the answer as it came, as in a pipe').conflicts('plain'))
    .option('--plain', 'a line for each value: index, type, ttl and data with tabs between')
    .action((handle: string, options: ResolveOptions) => resolve(handle, options));
  atAdmin(program.command('purge').argument('[handles...]'))
    .description('forget handles in every worker and instance')
    .option('--prefix <text>', 'all handles that begin so')
    .option('--all', 'everything')
    .option('--soft', 'keep it as a stand-in for an upstream that fails')
    .action((handles: string[], options: PurgeOptions) => purge(handles, options));
  atAdmin(program.command('stats'))
    .description('show what happens now')
    .option('--watch', 'again every second, until Ctrl-C')
    .option('--json', 'as JSON')
    .action((options: StatsOptions) => stats(options));
}

function addWarm(program: Command): void {
  atProxy(program.command('warm').argument('[file]', 'a handle a line; - for standard input'))
    .description('ask the proxy for each handle of a list or a prefix, so that it is in the cache')
    .option('--prefix <prefix>', 'the handles of this prefix, as the Handle server lists them')
    .addOption(new Option('--user <identity>', 'who may list, such as 300:21.T1/USER').env('HANDLE_USER'))
    .option('--password-file <file>', 'the password of the user, instead of HANDLE_PASSWORD')
    .option('--page-size <number>', 'so many handles to a page of the list', from1To(1_000_000), 10_000)
    .option('--concurrency <number>', 'so many at a time', from1To(1000), 32)
    .option('--rate <number>', 'at most so many a second; 0 is no limit', wholeNumber, 0)
    .option('--state <file>', 'remember here what is done, and go on from there')
    .action((file: string | undefined, options: WarmOptions) => warm(file, options));
}

function addBench(program: Command): void {
  atProxy(program.command('bench').argument('[handles...]'))
    .description('put a running proxy under load for a moment, and tell rate, latency and hits')
    .option('--file <file>', 'handles to ask for in turn, one a line; - for standard input')
    .option('--duration <seconds>', 'for so long, at most 60', from1To(60), 5)
    .option('--requests <number>', 'at most so many, up to 1000000', from1To(1_000_000), 100_000)
    .option('--connections <number>', 'so many at a time, at most 256', from1To(256), 16)
    .option('--rate <number>', 'at most so many a second; 0 is no limit', wholeNumber, 0)
    .option('--remote', 'also a proxy on another machine, which you may put under load')
    .option('--json', 'as JSON')
    .action((handles: string[], options: BenchOptions) => bench(handles, options));
}

function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell));
    });
}

const atProxy = (command: Command): Command =>
  command.addOption(address('--proxy <url>', 'the public listener', 'PROXY_URL', 'http://127.0.0.1:8080'));

const atAdmin = (command: Command): Command =>
  command
    .addOption(address('--admin <url>', 'the admin listener', 'ADMIN_URL', 'http://127.0.0.1:9090'))
    .addHelpText('after', '\nADMIN_TOKEN is the token of the admin listener, as in its configuration.');

function address(flags: string, description: string, variable: string, byDefault: string): Option {
  return new Option(flags, description)
    .env(variable)
    .default(byDefault)
    .argParser((text) => (text.trim() === '' ? byDefault : baseUrl(text)));
}

function baseUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new InvalidArgumentError('Give an address such as http://127.0.0.1:8080.');
  }
  return text.replace(/\/+$/, '');
}

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Give a whole number.');
  return Number(text);
}

function from1To(most: number): (text: string) => number {
  return (text) => {
    const number = wholeNumber(text);
    if (number >= 1 && number <= most) return number;
    throw new InvalidArgumentError(`Give a number from 1 to ${most}.`);
  };
}
