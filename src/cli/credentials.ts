// Who lists a prefix. The password is never an argument, which everybody on the machine could read.
import { readFileSync } from 'node:fs';
import { isLoopback } from '../config/loopback.js';
import { EXIT, Failure } from './exit.js';

export interface Login {
  proxy: string;
  /** Such as `300:21.T1/USER`. */
  user?: string;
  passwordFile?: string;
}

/** Undefined: nobody in particular. */
export function authorizationFor({ proxy, user, passwordFile }: Login): string | undefined {
  if (user === undefined || user === '') return undefined;
  const { protocol, hostname } = new URL(proxy);
  if (protocol !== 'https:' && !isLoopback(hostname))
    throw new Failure(`A password is not sent to ${proxy} in the clear: use https, or loopback.`, EXIT.usage);
  // The first colon ends a name in HTTP Basic (RFC 7617 §2); what is written with %3A already stays so.
  const name = user.includes(':') ? encodeURIComponent(user) : user;
  return `Basic ${Buffer.from(`${name}:${passwordFrom(passwordFile)}`).toString('base64')}`;
}

function passwordFrom(file: string | undefined): string {
  if (file !== undefined) return firstLineOf(file);
  const { HANDLE_PASSWORD: password = '' } = process.env;
  if (password !== '') return password;
  throw new Failure('Give the password of the user in HANDLE_PASSWORD or --password-file.', EXIT.usage);
}

function firstLineOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').split(/\r?\n/, 1)[0] ?? '';
  } catch {
    throw new Failure(`${file} cannot be read`, EXIT.usage);
  }
}
