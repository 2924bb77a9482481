// The `register` command: writes the keys, the site record and the registration bundle of a Handle service.
import { generateKeyPairSync } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { zipSync } from 'fflate';
import { tryDecode } from '../handle/bytes.js';
import {
  decodePublicKey,
  encodePublicKey,
  encodeSite,
  type Jwk,
  privateKeyFile,
  type SiteJson,
  type SiteServer,
} from '../handle/value-data.js';
import { EXIT, Failure, createFolder, print, printNote } from './terminal.js';

interface RegisterOptions extends Partial<Answers> {
  output: string;
  serial: number;
  keySize: string;
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
  const service = await readAnswers(options);
  const { files: keyFiles, publicKeys } =
    options.keys === undefined
      ? createKeys(Number(options.keySize), passphrase)
      : { files: [], publicKeys: readKeys(options.keys) };
  writeNewFiles(options.output, [...keyFiles, ...siteFiles(service, options.serial, publicKeys)]);
  print(nextSteps(options, service));
}

/** A valid answer to each question; empty if it is optional and was not given. */
type Answers = Record<FieldName, string>;

/** Prompts for values not given as options if standard input is a terminal; otherwise applies defaults. */
async function readAnswers(given: Partial<Answers>): Promise<Answers> {
  const terminal = process.stdin.isTTY ? openTerminal() : undefined;
  const answers: [string, string][] = [];
  try {
    for (const [name, field] of Object.entries<Field>(FIELDS)) {
      const option = given[name as FieldName] ?? (terminal ? undefined : (field.preset ?? ''));
      if (option !== undefined && !isAccepted(field, option))
        throw new Failure(`${optionOf(name)}: expected ${field.expected}.`, EXIT.usage);
      answers.push([name, option ?? (await askUntilAccepted(field, terminal))]);
    }
  } finally {
    terminal?.close();
  }
  return Object.fromEntries(answers) as Answers;
}

/** Returns the option of a field: `--tcp-port` for `tcpPort`. */
const optionOf = (name: string): string => `--${name.replace(/[A-Z]/g, '-$&').toLowerCase()}`;

type Terminal = ReturnType<typeof openTerminal>;

function openTerminal() {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // Keeps lines that arrive before their question, as when answers are pasted; `question` would lose them.
  const answers = lines[Symbol.asyncIterator]();
  return {
    close: () => lines.close(),
    /** @throws Failure when the input ends (Ctrl-C, Ctrl-D) */
    ask: async (prompt: string): Promise<string> => {
      lines.setPrompt(prompt);
      lines.prompt();
      const answer = await answers.next();
      if (answer.done === true) throw new Failure('\ncancelled; nothing was written');
      return answer.value;
    },
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

function createKeys(
  modulusLength: number,
  passphrase: string | undefined,
): { files: NewFile[]; publicKeys: PublicKeys } {
  const files: NewFile[] = [];
  const create = (publicName: string, privateName: string): Buffer => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength });
    const key = privateKey.export({ format: 'jwk' }) as Jwk;
    const content = encodePublicKey(key);
    files.push({ name: publicName, content });
    files.push({ name: privateName, content: privateKeyFile(key, passphrase), isPrivate: true });
    return content;
  };
  const server = create('pubkey.bin', 'privkey.bin');
  return { files, publicKeys: { server, administrator: create('admpub.bin', 'admpriv.bin') } };
}

/** Writes all files or none. Never overwrites a file, because a lost private key cannot be recovered. */
function writeNewFiles(folder: string, files: readonly NewFile[]): void {
  const existing = files.map(({ name }) => join(folder, name)).filter((path) => existsSync(path));
  if (existing.length > 0) throw new Failure(`will not overwrite ${existing.join(', ')}`, EXIT.usage);
  const written: string[] = [];
  try {
    createFolder(folder);
    for (const { name, content, isPrivate = false } of files) {
      const path = join(folder, name);
      // `wx` fails if the file has been created since the check.
      closeSync(openSync(path, 'wx', isPrivate ? 0o600 : 0o644));
      written.push(path);
      // Flushed, because a disk may find only then that it has no room.
      writeFileSync(path, content, { flush: true });
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    throw new Failure(`cannot write to ${folder}: ${(error as Error).message}`);
  }
}

function nextSteps({ output, serial, keys, passphraseFile }: RegisterOptions, service: Answers): string {
  const { address, tcpPort, udpPort, httpPort } = service;
  const isClear = keys === undefined && passphraseFile === undefined;
  return [
    `Wrote the files of the service to ${output}.`,
    ...(isClear ? ['The private keys are not encrypted; only their owner may read them.'] : []),
    'Next:',
    `1. Back up the keys. Keep *priv*.bin secret; send only ${join(output, 'sitebndl.zip')}.`,
    '2. Upload it where you register: https://hdl.handle.net/20.1000/111, or an organization listed at https://dona.net.',
    '3. Set in the configuration of the proxy:',
    `   native: { tcp: { port: ${tcpPort} }, ${udpPort === '0' ? '' : `udp: { port: ${udpPort} }, `}site: { address: ${JSON.stringify(address)}, serialNumber: ${serial} } }`,
    `   server: { port: ${httpPort} }`,
    '4. Read config/examples/cut-over.md before you move an existing service.',
  ].join('\n');
}

interface Field {
  question: string;
  /** Default for an empty answer. A field without a default is required. */
  preset?: string;
  expected: string;
  accepts: RegExp | ((text: string) => boolean);
}

/** Highest port that CNRI's set-up tool accepts. */
const MAX_PORT = 32_000;

const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= MAX_PORT;

/** Whether the address is loopback, unspecified, link-local (IPv6) or IPv4-mapped. */
const isLocal = (address: string): boolean => /^(127\.|0\.|::1?$|fe80:|::ffff:)/i.test(address);

/** Whether the text is a public IPv6 address without an IPv4 part or a zone. */
const isAddress6 = (text: string): boolean => isIPv6(text) && /^[\da-f:]+$/i.test(text) && !isLocal(text);

const isAddress = (text: string): boolean => (isIPv4(text) && !isLocal(text)) || isAddress6(text);

/** One line without control characters, up to 200 characters. */
const TEXT = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{1,200}$/;
const OPTIONAL_TEXT = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{0,200}$/;

const PORT = { expected: `a port from 1 to ${MAX_PORT}`, accepts: isPort };

type FieldName = keyof typeof FIELDS;

/** The fields in prompt order. */
const FIELDS = {
  address: {
    question: 'Public IP address of the service',
    expected: 'the public IP address of the service',
    accepts: isAddress,
  },
  address6: {
    question: 'Public IPv6 address too, or nothing',
    preset: '',
    expected: 'a public IPv6 address',
    accepts: (text: string) => text === '' || isAddress6(text),
  },
  tcpPort: { question: 'TCP port', preset: '2641', ...PORT },
  udpPort: {
    question: 'UDP port, 0 for none',
    preset: '2641',
    expected: `a port from 0 to ${MAX_PORT}`,
    accepts: (text: string) => text === '0' || isPort(text),
  },
  httpPort: { question: 'HTTP port', preset: '8000', ...PORT },
  organization: {
    question: 'Name of the organization',
    expected: 'the name of the organization, at most 200 characters',
    accepts: TEXT,
  },
  email: {
    question: 'E-mail address of the contact',
    expected: 'an e-mail address',
    accepts: /^[^@\s"\\]{1,64}@[^@\s"\\]{1,100}\.[^@\s"\\.]{1,63}$/,
  },
  contact: {
    question: 'Name of the contact, or nothing',
    preset: '',
    expected: 'a name of at most 200 characters',
    accepts: OPTIONAL_TEXT,
  },
  phone: {
    question: 'Phone number, or nothing',
    preset: '',
    expected: 'digits, spaces, hyphens and parentheses, without +',
    accepts: /^[\d ()-]{0,50}$/,
  },
  description: {
    question: 'Description of the service, or nothing for the organization',
    preset: '',
    expected: 'a description of at most 200 characters',
    accepts: OPTIONAL_TEXT,
  },
  prefix: {
    question: 'Prefix, or nothing if the registry has not assigned it yet',
    preset: '',
    expected: 'a prefix such as 21.T11998, without a slash',
    accepts: /^$|^[0-9A-Za-z][0-9A-Za-z.-]{0,99}$/,
  },
} satisfies Record<string, Field>;

const isAccepted = ({ accepts }: Field, text: string): boolean =>
  typeof accepts === 'function' ? accepts(text) : accepts.test(text);

/** Public key files (HS_PUBKEY data). */
interface PublicKeys {
  server: Buffer;
  administrator: Buffer;
}

/** Builds the files of a primary site, with the names and `YOUR_PREFIX` of CNRI's set-up tool. */
function siteFiles(service: Answers, serialNumber: number, keys: PublicKeys): NewFile[] {
  const site = siteOf(service, serialNumber, keys.server);
  const binary = encodeSite(site);
  const contact = Buffer.from(contactData(service));
  const bundle = {
    repl_admin: Buffer.from(`300:0.NA/${service.prefix || 'YOUR_PREFIX'}\n`),
    'admpub.bin': keys.administrator,
    'siteinfo.bin': binary,
    'contactdata.dct': contact,
  };
  return [
    { name: 'siteinfo.json', content: Buffer.from(JSON.stringify(site, undefined, 2)) },
    { name: 'siteinfo.bin', content: binary },
    { name: 'contactdata.dct', content: contact },
    { name: 'sitebndl.zip', content: Buffer.from(zipSync(bundle, { mtime: new Date() })) },
  ];
}

function siteOf(service: Answers, serialNumber: number, key: Buffer): SiteJson {
  const { address, address6, description, organization } = service;
  return {
    version: 1,
    protocolVersion: '2.11',
    serialNumber,
    primarySite: true,
    multiPrimary: false,
    attributes: [
      { name: 'desc', value: description || organization },
      ...(address6 === '' ? [] : [{ name: 'alt_addr.1', value: address6 }]),
    ],
    servers: [
      {
        serverId: 1,
        address,
        publicKey: { format: 'key', value: decodeServiceKey(key) },
        interfaces: serviceInterfaces(service),
      },
    ],
  };
}

function decodeServiceKey(key: Buffer): Jwk {
  const read = tryDecode(decodePublicKey, key);
  if (read === undefined) throw new Failure('--keys: invalid public key.', EXIT.usage);
  return read;
}

/** Announces administration like the set-up tool, because registries might reject a site without it. */
const serviceInterfaces = ({ tcpPort, udpPort, httpPort }: Answers): SiteServer['interfaces'] => [
  { query: true, admin: true, protocol: 'TCP', port: Number(tcpPort) },
  ...(udpPort === '0' ? [] : [{ query: true, admin: false, protocol: 'UDP', port: Number(udpPort) }]),
  { query: true, admin: true, protocol: 'HTTP', port: Number(httpPort) },
];

/** Writes CNRI's StreamTable format. */
function contactData({ organization, email, contact, phone }: Answers): string {
  const fields = {
    org_name: organization,
    contact_email: email,
    contact_name: contact,
    contact_phone: phone,
  };
  const lines = Object.entries(fields).flatMap(([key, value]) =>
    value === '' ? [] : [`  "${key}" = "${value.replace(/["\\]/g, '\\$&')}"`],
  );
  return `${['{', ...lines, '}'].join('\n')}\n`;
}
