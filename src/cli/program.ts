// Defines the subcommands with their arguments and options, and runs them.
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { readFingerprints } from '../config/addresses.js';
import { VERSION, readPackageFile } from '../config/package-files.js';
import { errorText } from '../errors.js';
import { withoutSlashesAtEnd } from '../handle/handle.js';
import { EXIT, Failure, printNote } from './terminal.js';

const EXIT_CODES = '\nExit codes: 0 success · 1 failure · 2 invalid usage or configuration.';

const CONFIG = ['--config <file>', 'configuration file (YAML), instead of the one named by CONFIG'] as const;
const JSON_OPTION = ['--json', 'print JSON'] as const;
const PREFIX = ['--prefix <prefix>', 'all handles of this prefix, such as 21.T1', handlePrefix] as const;

type Run<Given extends unknown[]> = (...given: Given) => Promise<void>;

/** Imports a command when it runs, so that no command loads the others' code. */
const lazy =
  <Given extends unknown[]>(load: () => Promise<Run<Given>>): Run<Given> =>
  async (...given) =>
    (await load())(...given);

export async function runCommand(args: readonly string[]): Promise<void> {
  // Exits successfully if the reader closes the pipe, as in `… | head -1`; the proxy serves without its log.
  if (args[0] !== 'serve') {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT.done);
      printNote(`cannot write the output: ${error.message}`);
      process.exit(EXIT.failed);
    });
    // Without a reader of its progress a command does its work, as in `… export --output file 2>&1 | head -1`.
    process.stderr.on('error', () => undefined);
  }
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
    else {
      printNote(errorText(error));
      process.exitCode = error instanceof Failure ? error.exitCode : EXIT.failed;
    }
  }
}

export function createProgram(): Command {
  const program = new Command('handle-resolver-proxy')
    .description('A caching resolver proxy for persistent identifiers of the Handle System.')
    .version(VERSION, '-V, --version', 'print the version')
    .addHelpText('afterAll', EXIT_CODES)
    .exitOverride();
  addConfigured(program);
  addOperate(program);
  addReport(program);
  addTransfer(program);
  addLoad(program);
  addCheckLinks(program);
  addRegister(program);
  addDevServer(program);
  addCompletion(program);
  return program;
}

function addConfigured(program: Command): void {
  program
    .command('serve')
    .description('start the proxy; the default command')
    .option(...CONFIG)
    .action(lazy(async () => (await import('../app/run.js')).run));
  program
    .command('check-config')
    .description(
      'check the configuration as serve does; print the values that are set and their source, secrets masked',
    )
    .option(...CONFIG)
    .option('--all', 'also print the keys that have their default')
    .option('--probe', 'also test the Handle server, its secondaries, Redis and the reverse lookup')
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./config-commands.js')).checkConfig));
  program
    .command('site-record')
    .description('print the site record of this proxy (HS_SITE) for clients of the native protocol')
    .option(...CONFIG)
    .option('--index <number>', 'index of the value in the prefix record', from1To(1_000_000), 2)
    .option(
      '--caching',
      'print a primary site for clients that use only this one (local_info.json, resolver_site)',
    )
    .option('--binary', 'print a binary resolver_site file')
    .action(lazy(async () => (await import('./config-commands.js')).printSiteRecord));
}

function addOperate(program: Command): void {
  const handle = 'handle, also as hdl:… or a URL; - for standard input with one handle per line';
  atAdmin(atProxy(program.command('resolve').argument('<handle>', handle)))
    .description('resolve a handle through the proxy and show its cache entries')
    .option('--direct <url>', 'resolve at this Handle server instead of the proxy', baseUrl)
    .option('--fingerprint <sha256>', 'SHA-256 of the certificate, for --direct', fingerprint)
    .option('--ca <file>', 'PEM file of the authority that signed the certificate')
    .addOption(
      new Option('--insecure', 'accept any certificate with --direct, and print its fingerprint').conflicts([
        'fingerprint',
        'ca',
      ]),
    )
    .addOption(
      new Option(
        '--native <address>',
        'resolve over the native protocol at this host, udp://host:port or tcp://host:port',
      )
        .argParser(nativeAddress)
        .conflicts(['direct']),
    )
    .addOption(new Option('--json', 'print the response body unchanged, as in a pipe').conflicts('plain'))
    .option('--plain', 'print index, type, ttl and data of each value, separated by tabs')
    .action(lazy(async () => (await import('./resolve.js')).resolveCommand));
  atAdmin(program.command('purge').argument('[handles...]'))
    .description('invalidate handles in every instance')
    .option(...PREFIX)
    .option('--all', 'all handles')
    .option('--soft', 'mark entries as stale instead of removing them')
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./operate.js')).purgeCommand));
  atAdmin(program.command('stats'))
    .description('show current statistics')
    .option('--watch', 'refresh every second until Ctrl-C')
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./operate.js')).stats));
  atAdmin(program.command('traffic'))
    .description('show limited networks and the counts of each traffic rule, or end a limit')
    .option('--unblock <network>', 'end the limit of this network')
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./operate.js')).traffic));
}

function addReport(program: Command): void {
  atAdmin(program.command('report'))
    .description('show the resolution report of a prefix for a month; requires reports.enabled')
    .requiredOption(
      '--prefix <prefix>',
      'prefix without a slash, such as 21.T1; other for all prefixes without a report',
      handlePrefix,
    )
    .option('--month <month>', 'month in UTC, such as 2026-11, by default the current month', month)
    .addOption(
      new Option('--csv <folder>', 'write summary.csv, top.csv and failed.csv to this folder').conflicts(
        'json',
      ),
    )
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./operate.js')).report));
}

function addTransfer(program: Command): void {
  atAdmin(program.command('export'))
    .description('write the records of a prefix that are in memory, one JSON object per line')
    .requiredOption(...PREFIX)
    .option('--output <file>', 'file instead of standard output; compressed when its name ends in .gz')
    .action(lazy(async () => (await import('./transfer.js')).exportCommand));
  atAdmin(
    program
      .command('import')
      .argument(
        '<file>',
        'export, output of hdl-dblist -v, batch file or SQL table as CSV, compressed with gzip or not',
      ),
  )
    .description('load the records of an export or of a Handle.Net server into memory')
    .addOption(
      new Option(
        '--output <file>',
        'write a seed file instead; compressed when its name ends in .gz',
      ).conflicts('skip'),
    )
    .option(
      '--skip <number>',
      'number of records to skip at the beginning of the file, to resume',
      wholeNumberOption,
      0,
    )
    .action(lazy(async () => (await import('./transfer.js')).importCommand));
}

function addLoad(program: Command): void {
  atProxy(program.command('warm').argument('[file]', 'file with one handle per line; - for standard input'))
    .description('load the handles of a list or a prefix into the cache')
    .option('--prefix <prefix>', 'warm all handles that the Handle server lists under this prefix')
    .addOption(new Option('--user <identity>', 'user for listing, such as 300:21.T1/USER').env('HANDLE_USER'))
    .option('--password-file <file>', 'file with the password of the user, instead of HANDLE_PASSWORD')
    .option('--page-size <number>', 'handles per page of the list', from1To(1_000_000), 10_000)
    .option('--concurrency <number>', 'maximum concurrent requests', from1To(1000), 32)
    .option('--rate <number>', 'maximum requests per second; 0 is unlimited', wholeNumberOption, 0)
    .option('--state <file>', 'file that records when each handle is due again, to resume and to refresh')
    .action(lazy(async () => (await import('./warm.js')).warm));
  atProxy(program.command('bench').argument('[handles...]'))
    .description('send requests to a running proxy and report throughput, latency and hit ratio')
    .option('--file <file>', 'file with one handle per line; - for standard input')
    .option('--duration <seconds>', 'maximum duration, up to 60', from1To(60), 5)
    .option('--requests <number>', 'maximum requests, up to 1000000', from1To(1_000_000), 100_000)
    .option('--connections <number>', 'concurrent connections, up to 256', from1To(256), 16)
    .option('--rate <number>', 'maximum requests per second; 0 is unlimited', wholeNumberOption, 0)
    .option('--remote', 'allow a proxy on another machine')
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./bench.js')).bench));
}

function addCheckLinks(program: Command): void {
  atAdmin(program.command('check-links').argument('[file]', 'file that import reads'))
    .description('request the URLs of records, and report which are dead, and since when')
    .option(...PREFIX)
    .requiredOption('--state <file>', 'file with the last check of each URL, to resume')
    .option('--csv <file>', 'write the dead links to this file')
    .option('--rate <number>', 'maximum requests per minute to a host', from1To(6000), 30)
    .option('--hosts <number>', 'maximum hosts that are requested at the same time', from1To(256), 16)
    .option('--timeout <seconds>', 'maximum duration of a request', from1To(300), 20)
    .option('--age <hours>', 'age from which a URL is checked again', wholeNumberOption, 24)
    .option(...JSON_OPTION)
    .action(lazy(async () => (await import('./check-links.js')).checkLinks));
}

function addRegister(program: Command): void {
  program
    .command('register')
    .description('write the keys, the site record and the bundle for registering a Handle service')
    .option('--output <folder>', 'folder of the files; existing files are never replaced', 'handle-service')
    .option('--address <ip>', 'public IP address of the service')
    .option('--address6 <ip>', 'public IPv6 address of a service that also has an IPv4 address')
    .option('--tcp-port <port>', 'port of the native protocol over TCP')
    .option('--udp-port <port>', 'port of the native protocol over UDP; 0 for none')
    .option('--http-port <port>', 'port of HTTP')
    .option('--organization <name>', 'organization that runs the service')
    .option('--email <address>', 'e-mail address of the contact')
    .option('--contact <name>', 'name of the contact')
    .option('--phone <number>', 'phone number of the contact, without +')
    .option('--description <text>', 'description of the service, by default the organization')
    .option('--prefix <prefix>', 'prefix of the service, once it is assigned')
    .option('--serial <number>', 'serial number of the site; raise it with every change', from1To(65_535), 1)
    .addOption(
      new Option('--key-size <bits>', 'size of new RSA keys').choices(['2048', '4096']).default('2048'),
    )
    .option(
      '--keys <folder>',
      'folder with pubkey.bin and admpub.bin of a service that moves; creates no keys',
    )
    .option('--passphrase-file <file>', 'file with the passphrase that encrypts the private keys')
    .addHelpText('after', '\nOn a terminal the command asks for missing values.')
    .action(lazy(async () => (await import('./register.js')).register));
}

function addDevServer(program: Command): void {
  program
    .command('dev-server')
    .description('run a Handle server in memory for tests of other programs; not for production')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port of the record interface; 0 selects a free one', portNumber, 8000)
    .option(
      '--records <file>',
      'file with a record per line (handle and values), compressed with gzip or not',
    )
    .option('--native-port <number>', 'port of the native protocol over UDP and TCP', portNumber)
    .action(lazy(async () => (await import('./dev-server.js')).devServer));
}

function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action((shell: string) => {
      process.stdout.write(readPackageFile(`config/completion/handle-resolver-proxy.${shell}`));
    });
}

const atProxy = (command: Command): Command => command.addOption(address('proxy', 'public', 8080));

const atAdmin = (command: Command): Command =>
  command
    .addOption(address('admin', 'admin', 9090))
    .addHelpText('after', '\nEnvironment: ADMIN_TOKEN is the token of the admin listener (admin.token).');

/** Creates `--proxy` or `--admin`, also set by PROXY_URL or ADMIN_URL. Empty text selects the default. */
function address(name: 'proxy' | 'admin', listener: string, port: number): Option {
  const byDefault = `http://127.0.0.1:${port}`;
  return new Option(`--${name} <url>`, `address of the ${listener} listener`)
    .env(`${name.toUpperCase()}_URL`)
    .default(byDefault)
    .argParser((text) => (text.trim() === '' ? byDefault : baseUrl(text)));
}

function baseUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new InvalidArgumentError('Give an address such as http://127.0.0.1:8080.');
  }
  return withoutSlashesAtEnd(text);
}

/** Completes the address of a native listener: TCP and port 2641 by default. */
function nativeAddress(text: string): string {
  const address = text.includes('://') ? text : `tcp://${text}`;
  if (!/^(?:tcp|udp):\/\/[^/?#@]+$/.test(address) || !URL.canParse(address))
    throw new InvalidArgumentError('Give a host, udp://host:port or tcp://host:port.');
  return new URL(address).port === '' ? `${address}:2641` : address;
}

function fingerprint(text: string): string {
  const read = readFingerprints(text);
  if (read !== undefined) return read;
  throw new InvalidArgumentError('Give a SHA-256 fingerprint: 64 hex digits, with colons or without.');
}

function month(text: string): string {
  if (/^\d{4}-(?:0[1-9]|1[0-2])$/.test(text)) return text;
  throw new InvalidArgumentError('Give a month such as 2026-11.');
}

function handlePrefix(text: string): string {
  if (text !== '' && !text.includes('/')) return text;
  throw new InvalidArgumentError('Give a prefix without a slash, such as 21.T1.');
}

function wholeNumberOption(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Give a whole number.');
  return Number(text);
}

function portNumber(text: string): number {
  const number = wholeNumberOption(text);
  if (number <= 65_535) return number;
  throw new InvalidArgumentError('Give a port from 0 to 65535.');
}

function from1To(max: number): (text: string) => number {
  return (text) => {
    const number = wholeNumberOption(text);
    if (number >= 1 && number <= max) return number;
    throw new InvalidArgumentError(`Give a number from 1 to ${max}.`);
  };
}
