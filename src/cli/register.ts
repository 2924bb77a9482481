// The `register` command: writes the keys, the site record and the registration bundle of a Handle service.
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { type Jwk, encodePublicKey, privateKeyFile } from '../handle/value-data.js';
import {
  type Field,
  type FieldName,
  FIELDS,
  isAccepted,
  type PublicKeys,
  type HandleService,
  registrationFiles,
} from './registration.js';
import { EXIT, Failure, print, printNote } from './terminal.js';

interface RegisterOptions extends Partial<Record<FieldName, string>> {
  output: string;
  serial: number;
  keySize: string;
  /** Folder of existing public keys, for a service that moves. */
  keys?: string;
  passphraseFile?: string;
}

interface NewFile {
  name: string;
  content: Buffer;
  isPrivate?: boolean;
}

/** Runs the command. @throws Failure, without writing a file, for invalid input or if a file exists */
export async function register(options: RegisterOptions): Promise<void> {
  const passphrase = readPassphrase(options);
  const service = await askService(options);
  const { files: keyFiles, publicKeys } =
    options.keys === undefined
      ? createKeys(Number(options.keySize), passphrase)
      : { files: [], publicKeys: readKeys(options.keys) };
  const site = Object.entries(siteFiles(service, publicKeys)).map(([name, content]) => ({ name, content }));
  writeNewFiles(options.output, [...keyFiles, ...site]);
  print(nextSteps(options, service));
}

async function askService({ serial, ...given }: RegisterOptions): Promise<HandleService> {
  const answers = await readAnswers(given);
  const optional = (name: FieldName): string | undefined => answers[name] || undefined;
  const { address, organization, email } = answers;
  return {
    address,
    address6: optional('address6'),
    ports: {
      tcp: Number(answers.tcpPort),
      udp: Number(answers.udpPort),
      http: Number(answers.httpPort),
    },
    serialNumber: serial,
    description: optional('description') ?? organization,
    contact: { organization, email, name: optional('contact'), phone: optional('phone') },
    prefix: optional('prefix'),
  };
}

/** Prompts for values not given as options if standard input is a terminal; otherwise applies defaults. */
async function readAnswers(given: Partial<Record<FieldName, string>>): Promise<Record<FieldName, string>> {
  const terminal = process.stdin.isTTY ? openTerminal() : undefined;
  const answers: [string, string][] = [];
  try {
    for (const [name, field] of Object.entries(FIELDS)) {
      const option = given[name as FieldName] ?? (terminal ? undefined : (field.preset ?? ''));
      if (option !== undefined && !isAccepted(field, option))
        throw new Failure(`${field.option}: expected ${field.expected}.`, EXIT.usage);
      answers.push([name, option ?? (await askUntilAccepted(field, terminal))]);
    }
  } finally {
    terminal?.close();
  }
  return Object.fromEntries(answers) as Record<FieldName, string>;
}

type Terminal = ReturnType<typeof openTerminal>;

function openTerminal() {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  lines.once('close', () => {
    closed.abort();
  });
  return {
    close: () => {
      lines.close();
    },
    /** @throws Failure when the input ends (Ctrl-C, Ctrl-D) */
    ask: (prompt: string): Promise<string> =>
      lines.question(prompt, closed).catch(() => {
        throw new Failure('\ncancelled; nothing was written');
      }),
  };
}

async function askUntilAccepted(field: Field, terminal: Terminal | undefined): Promise<string> {
  const { question, preset = '', expected } = field;
  const prompt = `${question}${preset === '' ? '' : ` [${preset}]`}: `;
  for (;;) {
    const answer = ((await terminal?.ask(prompt)) ?? '').trim() || preset;
    if (isAccepted(field, answer)) return answer;
    printNote(`Expected ${expected}.`);
  }
}

/** Reads the passphrase. Only ASCII is accepted, because hdllib encodes other characters differently. */
function readPassphrase({ passphraseFile: file }: RegisterOptions): string | undefined {
  if (file === undefined) return undefined;
  const passphrase = readField('--passphrase-file', file).toString('utf8').split(/\r?\n/, 1)[0] ?? '';
  if (/^[ -~]+$/.test(passphrase)) return passphrase;
  throw new Failure('--passphrase-file: expected a first line of printable ASCII characters.', EXIT.usage);
}

function readKeys(folder: string): PublicKeys {
  const readKey = (name: string): Buffer => readField('--keys', join(folder, name));
  return { server: readKey('pubkey.bin'), administrator: readKey('admpub.bin') };
}

function readField(option: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new Failure(`${option}: cannot read ${file}`, EXIT.usage);
  }
}

/** Creates the key pairs of the server and the administrator. */
function createKeys(
  modulusLength: number,
  passphrase: string | undefined,
): { files: NewFile[]; publicKeys: PublicKeys } {
  const create = (publicName: string, privateName: string): NewFile[] => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength });
    const key = privateKey.export({ format: 'jwk' }) as Jwk;
    return [
      { name: publicName, content: encodePublicKey(key) },
      { name: privateName, content: privateKeyFile(key, passphrase), isPrivate: true },
    ];
  };
  const server = create('pubkey.bin', 'privkey.bin');
  const administrator = create('admpub.bin', 'admpriv.bin');
  const contentOf = ([first]: NewFile[]): Buffer => first?.content ?? Buffer.alloc(0);
  return {
    files: [...server, ...administrator],
    publicKeys: { server: contentOf(server), administrator: contentOf(administrator) },
  };
}

function siteFiles(service: HandleService, keys: PublicKeys): ReturnType<typeof registrationFiles> {
  try {
    return registrationFiles(service, keys, new Date());
  } catch (error) {
    if (error instanceof RangeError) throw new Failure('--keys: invalid public key.', EXIT.usage);
    throw error;
  }
}

/** Writes all files or none. Never overwrites a file, because a lost private key cannot be recovered. */
function writeNewFiles(folder: string, files: readonly NewFile[]): void {
  const existing = files.map(({ name }) => join(folder, name)).filter((path) => existsSync(path));
  if (existing.length > 0) throw new Failure(`will not overwrite ${existing.join(', ')}`, EXIT.usage);
  const written: string[] = [];
  try {
    mkdirSync(folder, { recursive: true });
    for (const { name, content, isPrivate = false } of files) {
      const path = join(folder, name);
      // `wx` fails if the file has been created since the check.
      writeFileSync(path, content, { flag: 'wx', mode: isPrivate ? 0o600 : 0o644 });
      written.push(path);
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    throw new Failure(`cannot write to ${folder}: ${(error as Error).message}`);
  }
}

function nextSteps({ output, keys, passphraseFile }: RegisterOptions, service: HandleService): string {
  const { address, serialNumber, ports } = service;
  const isClear = keys === undefined && passphraseFile === undefined;
  return [
    `Wrote the files of the service to ${output}.`,
    ...(isClear ? ['The private keys are not encrypted; only their owner may read them.'] : []),
    'Next:',
    `1. Back up the keys. Keep *priv*.bin secret; send only ${join(output, 'sitebndl.zip')}.`,
    '2. Upload it where you register: https://hdl.handle.net/20.1000/111, or an organization listed at https://dona.net.',
    '3. Set in the configuration of the proxy:',
    `   native: { tcp: { port: ${ports.tcp} }, ${ports.udp === 0 ? '' : `udp: { port: ${ports.udp} }, `}site: { address: ${JSON.stringify(address)}, serialNumber: ${serialNumber} } }`,
    `   server: { port: ${ports.http} }`,
    '4. Read config/examples/cut-over.md before you move an existing service.',
  ].join('\n');
}
