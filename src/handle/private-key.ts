// Private key files of a Handle server: RSA keys in hdllib's layout, optionally encrypted.
import { createCipheriv, pbkdf2Sync, randomBytes } from 'node:crypto';
import { int32, sized } from './bytes.js';
import { type Jwk, signed } from './predefined-data.js';

/** Encryption method, the first field of a file. The obsolete DES methods (0, 2, 3) are not supported. */
const METHOD = { none: 1, aes: 4 } as const;

/** Parameters used by CNRI's set-up tool: PBKDF2 with SHA-1, then AES-128 in CBC mode. */
const ITERATIONS = 10_000;
const KEY_BYTES = 16;
const SALT_BYTES = 16;
const IV_BYTES = 16;

const NUMBERS = ['n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi'];

/** Encodes a private RSA key as a file, encrypted if an ASCII passphrase is given. */
export function privateKeyFile(key: Jwk, passphrase: string | undefined): Buffer {
  const numbers = NUMBERS.map((member) => sized(signed(key[member])));
  const clear = Buffer.concat([sized('RSA_PRIVCRT_KEY'), ...numbers]);
  return passphrase === undefined ? Buffer.concat([int32(METHOD.none), clear]) : encrypt(clear, passphrase);
}

function encrypt(clear: Buffer, passphrase: string): Buffer {
  const salt = randomBytes(SALT_BYTES);
  const iv = randomBytes(IV_BYTES);
  const key = pbkdf2Sync(passphrase, salt, ITERATIONS, KEY_BYTES, 'sha1');
  const cipher = createCipheriv('aes-128-cbc', key, iv);
  const encrypted = Buffer.concat([cipher.update(clear), cipher.final()]);
  const head = [int32(METHOD.aes), sized(salt), int32(ITERATIONS), int32(KEY_BYTES * 8)];
  return Buffer.concat([...head, sized(iv), sized(encrypted)]);
}
