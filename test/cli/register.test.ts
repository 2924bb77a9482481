// `register`: its files for a new or moved Handle service have the formats of CNRI's set-up tool.
import { createDecipheriv, createPublicKey, pbkdf2Sync, verify, sign, createPrivateKey } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unzipSync } from 'fflate';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { ByteReader } from '../../src/handle/bytes.js';
import { type Jwk, decodePublicKey, decodeSite } from '../../src/handle/value-data.js';
import { builtCli, cli } from '../support/cli.js';
import { startOnTerminal } from '../support/terminal.js';

const REQUIRED = [
  '--address',
  '203.0.113.10',
  '--organization',
  'Example Library',
  '--email',
  'pid@example.org',
];
const KEY_FILES = ['admpriv.bin', 'admpub.bin', 'privkey.bin', 'pubkey.bin'];
const SITE_FILES = ['contactdata.dct', 'sitebndl.zip', 'siteinfo.bin', 'siteinfo.json'];
const PHRASE = 'correct horse battery staple';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'register-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true });
  });
  return path;
}

async function registerIn(output: string, args: string[]): Promise<string> {
  expect(await cli(['register', '--output', output, ...REQUIRED, ...args])).toMatchObject({
    code: 0,
    stderr: '',
  });
  return output;
}

/** Runs the command and returns its output folder. */
const register = (...args: string[]): Promise<string> => registerIn(join(folder(), 'service'), args);

const former = mkdtempSync(join(tmpdir(), 'register-'));
afterAll(() => {
  rmSync(former, { recursive: true });
});
let registered: Promise<string> | undefined;

/** Returns the option with the keys of one service, because new keys cost more than all else that the command does. */
const sameKeys = async (): Promise<string[]> => {
  registered ??= registerIn(join(former, 'service'), []);
  return ['--keys', await registered];
};

const NUMBERS = ['n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi'];

/** Parses an unencrypted private key. */
function readPrivateKey(bytes: Buffer): Jwk {
  const reader = new ByteReader(bytes);
  expect(reader.sizedText()).toBe('RSA_PRIVCRT_KEY');
  const numbers = NUMBERS.map((name) => {
    const number = reader.sized();
    // Java adds a sign byte only if the highest bit is set.
    expect(number[0] === 0 ? number[1]! > 0x7f : number[0]! <= 0x7f).toBe(true);
    return [name, (number[0] === 0 ? number.subarray(1) : number).toString('base64url')] as const;
  });
  expect(reader.remaining).toBe(0);
  return { kty: 'RSA', ...Object.fromEntries(numbers) };
}

function decrypt(file: Buffer): Buffer {
  const reader = new ByteReader(file);
  expect(reader.int32()).toBe(4);
  const salt = reader.sized();
  const iterations = reader.int32();
  expect([salt.length, iterations, reader.int32()]).toEqual([16, 10_000, 128]);
  const iv = reader.sized();
  const decipher = createDecipheriv('aes-128-cbc', pbkdf2Sync(PHRASE, salt, iterations, 16, 'sha1'), iv);
  return Buffer.concat([decipher.update(reader.sized()), decipher.final()]);
}

function expectPair(privateKey: Jwk, publicKey: Jwk): void {
  const signature = sign('sha256', Buffer.from('x'), createPrivateKey({ key: privateKey, format: 'jwk' }));
  const key = createPublicKey({ key: publicKey, format: 'jwk' });
  expect(verify('sha256', Buffer.from('x'), key, signature)).toBe(true);
}

describe('register command', () => {
  // In this process, a call that never returns would stop the test runner.
  test.runIf(existsSync('/proc'))('fails in a place where no folder can be created', async () => {
    const ended = await builtCli(['register', '--output', '/proc/none/service', ...REQUIRED]);
    expect([ended.code, ended.stderr]).toEqual([
      1,
      expect.stringContaining('cannot write to /proc/none/service'),
    ]);
  });

  test('creates each folder of the path', async () => {
    const output = await registerIn(`${folder()}/next/../several/folders`, await sameKeys());
    expect(readdirSync(output)).toEqual(expect.arrayContaining(SITE_FILES));
  });

  test('writes key files in CNRI’s layout, with private keys readable only by their owner', async () => {
    const output = await register();
    expect(readdirSync(output).sort()).toEqual([...KEY_FILES, ...SITE_FILES].sort());
    for (const [publicName, privateName] of [
      ['pubkey.bin', 'privkey.bin'],
      ['admpub.bin', 'admpriv.bin'],
    ] as const) {
      const publicFile = readFileSync(join(output, publicName));
      expect(publicFile.length).toBe(289);
      expect(publicFile.subarray(0, 28).toString('hex')).toBe(
        `0000000b${Buffer.from('RSA_PUB_KEY').toString('hex')}00000000000301000100000101`,
      );
      expect(publicFile.subarray(285).toString('hex')).toBe('00000000');
      const privateFile = readFileSync(join(output, privateName));
      expect(privateFile.readInt32BE()).toBe(1);
      expectPair(readPrivateKey(privateFile.subarray(4)), decodePublicKey(publicFile));
      expect(statSync(join(output, privateName)).mode & 0o777).toBe(0o600);
    }
  });

  test('encrypts the private keys with a passphrase, as CNRI’s set-up tool does', async () => {
    const file = join(folder(), 'passphrase');
    writeFileSync(file, `${PHRASE}\n`);
    const output = await register('--passphrase-file', file);
    const privateFile = readFileSync(join(output, 'privkey.bin'));
    expect(privateFile.length).toBe(1272);
    expectPair(
      readPrivateKey(decrypt(privateFile)),
      decodePublicKey(readFileSync(join(output, 'pubkey.bin'))),
    );
  });

  test('creates 4096-bit keys with --key-size 4096', async () => {
    const output = await register('--key-size', '4096');
    const { n = '' } = decodePublicKey(readFileSync(join(output, 'admpub.bin')));
    expect(Buffer.from(n, 'base64url').length * 8).toBe(4096);
  });

  test('writes the site record as JSON and binary, with the server’s public key', async () => {
    const keys = await sameKeys();
    const described = ['--serial', '7', '--description', 'Handles of X'];
    const output = await register(...keys, '--address6', '2001:db8::7', ...described);
    const json = readFileSync(join(output, 'siteinfo.json'), 'utf8');
    const binary = readFileSync(join(output, 'siteinfo.bin'));
    expect(binary.subarray(0, 8).toString('hex')).toBe('0001020b00078002');
    expect(binary.toString('hex')).toMatch(/00000003030100000a51020000000a51030200001f40$/);
    const site = JSON.parse(json) as unknown;
    expect(json).toBe(JSON.stringify(site, undefined, 2));
    expect(decodeSite(binary)).toEqual(site);
    expect(site).toEqual({
      version: 1,
      protocolVersion: '2.11',
      serialNumber: 7,
      primarySite: true,
      multiPrimary: false,
      attributes: [
        { name: 'desc', value: 'Handles of X' },
        { name: 'alt_addr.1', value: '2001:db8::7' },
      ],
      servers: [
        {
          serverId: 1,
          address: '203.0.113.10',
          publicKey: { format: 'key', value: decodePublicKey(readFileSync(join(keys[1]!, 'pubkey.bin'))) },
          interfaces: [
            { query: true, admin: true, protocol: 'TCP', port: 2641 },
            { query: true, admin: false, protocol: 'UDP', port: 2641 },
            { query: true, admin: true, protocol: 'HTTP', port: 8000 },
          ],
        },
      ],
    });
  });

  test('omits UDP when its port is 0', async () => {
    const ports = ['--udp-port', '0', '--tcp-port', '2642', '--http-port', '80'];
    const output = await register(...(await sameKeys()), ...ports);
    const [server] = decodeSite(readFileSync(join(output, 'siteinfo.bin'))).servers;
    expect(server!.interfaces.map(({ protocol, port }) => [protocol, port])).toEqual([
      ['TCP', 2642],
      ['HTTP', 80],
    ]);
  });

  test('bundles four files, none of them a private key, in the order of CNRI’s set-up tool', async () => {
    const output = await register();
    const bundle = unzipSync(readFileSync(join(output, 'sitebndl.zip')));
    expect(Object.keys(bundle)).toEqual(['repl_admin', 'admpub.bin', 'siteinfo.bin', 'contactdata.dct']);
    expect(Buffer.from(bundle['repl_admin']!).toString()).toBe('300:0.NA/YOUR_PREFIX\n');
    for (const name of ['admpub.bin', 'siteinfo.bin', 'contactdata.dct']) {
      expect(Buffer.from(bundle[name]!)).toEqual(readFileSync(join(output, name)));
    }
  });

  test('names the administrator of an assigned prefix in the bundle', async () => {
    const output = await register(...(await sameKeys()), '--prefix', '21.T11998');
    const bundle = unzipSync(readFileSync(join(output, 'sitebndl.zip')));
    expect(Buffer.from(bundle['repl_admin']!).toString()).toBe('300:0.NA/21.T11998\n');
  });

  test('escapes quotes and backslashes in the contact data', async () => {
    const contact = ['--contact', String.raw`Zoë "Z" \ O’Neil`, '--phone', '(030) 1234-5'];
    const output = await register(...(await sameKeys()), ...contact);
    expect(readFileSync(join(output, 'contactdata.dct'), 'utf8')).toBe(
      String.raw`{
  "org_name" = "Example Library"
  "contact_email" = "pid@example.org"
  "contact_name" = "Zoë \"Z\" \\ O’Neil"
  "contact_phone" = "(030) 1234-5"
}
`,
    );
  });

  test('uses the existing keys of a service that moves', async () => {
    const keys = await sameKeys();
    const output = await register(...keys, '--address', '203.0.113.11', '--serial', '2');
    expect(readdirSync(output).sort()).toEqual(SITE_FILES);
    const [server] = decodeSite(readFileSync(join(output, 'siteinfo.bin'))).servers;
    expect(server!.publicKey!.value).toEqual(decodePublicKey(readFileSync(join(keys[1]!, 'pubkey.bin'))));
  });

  test('writes nothing when an output file exists', async () => {
    const output = folder();
    writeFileSync(join(output, 'siteinfo.json'), 'mine');
    const { code, stderr } = await cli(['register', '--output', output, ...REQUIRED]);
    expect([code, stderr]).toEqual([2, `will not overwrite ${join(output, 'siteinfo.json')}\n`]);
    expect(readdirSync(output)).toEqual(['siteinfo.json']);
    expect(readFileSync(join(output, 'siteinfo.json'), 'utf8')).toBe('mine');
  });

  test.each([
    [['--address', '127.0.0.1']],
    [['--address', '::1']],
    [['--address', 'handle.example.org']],
    [['--address6', '64:ff9b::192.0.2.1']],
    [['--tcp-port', '32001']],
    [['--phone', '+49 30 1']],
    [['--email', 'nobody']],
    [['--contact', 'two\nlines']],
    [['--prefix', '21.T1/x']],
    [['--serial', '65536']],
    [['--key-size', '1024']],
    [['--passphrase-file', '/nowhere']],
    [['--keys', '/nowhere']],
  ])('rejects %j and writes nothing', async (args) => {
    const output = join(folder(), 'service');
    const { code, stderr } = await cli(['register', '--output', output, ...REQUIRED, ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(args[0]!)]);
    expect(() => readdirSync(output)).toThrow('ENOENT');
  });

  test('names a missing option when standard input is not a terminal', async () => {
    const { code, stderr } = await cli(['register', '--output', join(folder(), 'service')]);
    expect([code, stderr]).toEqual([2, '--address: expected the public IP address of the service.\n']);
  });

  test('prompts for missing values on a terminal, and repeats the prompt after an invalid value', async () => {
    const output = join(folder(), 'service');
    const args = ['register', '--output', output, ...REQUIRED.slice(2), ...(await sameKeys())];
    const { screen, press, exited } = startOnTerminal(args);
    const answer = async (question: string, text: string): Promise<void> => {
      await expect.poll(screen).toMatch(new RegExp(`${question}[^\n]*: \u001b\\[\\d+G$`));
      press(`${text}\r`);
    };
    await answer('Public IP address', 'here');
    await answer('Expected the public IP address[^]*Public IP address', '203.0.113.12');
    for (const question of ['IPv6', 'TCP port', 'UDP port', 'HTTP port']) await answer(question, '');
    for (const question of ['Name of the contact', 'Phone', 'Description', 'Prefix'])
      await answer(question, '');
    expect(await exited).toMatchObject({ code: 0 });
    const [server] = decodeSite(readFileSync(join(output, 'siteinfo.bin'))).servers;
    expect(server!.address).toBe('203.0.113.12');
  });

  test('takes answers that are pasted together', async () => {
    const output = join(folder(), 'service');
    const args = ['register', '--output', output, ...REQUIRED.slice(2), ...(await sameKeys())];
    const { screen, press, exited } = startOnTerminal(args);
    await expect.poll(screen).toContain('Public IP address');
    press(['203.0.113.12', '', '', '', '', '', '', 'A service', ''].join('\r') + '\r');
    expect(await exited).toMatchObject({ code: 0 });
    const site = decodeSite(readFileSync(join(output, 'siteinfo.bin')));
    expect(site.attributes).toContainEqual({ name: 'desc', value: 'A service' });
  });

  test('writes nothing when the terminal input ends early', async () => {
    const output = join(folder(), 'service');
    const { screen, press, exited } = startOnTerminal(['register', '--output', output]);
    await expect.poll(screen).toContain('Public IP address');
    press('\u0004');
    expect(await exited).toMatchObject({ code: 1 });
    expect(screen()).toContain('nothing was written');
    expect(() => readdirSync(output)).toThrow('ENOENT');
  });
});
