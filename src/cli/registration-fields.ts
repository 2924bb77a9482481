// The fields of the `register` command: option, prompt, default and validation.
import { isIPv4, isIPv6 } from 'node:net';

export interface Field {
  option: string;
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

export type FieldName =
  | 'address'
  | 'address6'
  | 'tcpPort'
  | 'udpPort'
  | 'httpPort'
  | 'organization'
  | 'email'
  | 'contact'
  | 'phone'
  | 'description'
  | 'prefix';

/** The fields in prompt order. */
export const FIELDS: Record<FieldName, Field> = {
  address: {
    option: '--address',
    question: 'Public IP address of the service',
    expected: 'the public IP address of the service',
    accepts: isAddress,
  },
  address6: {
    option: '--address6',
    question: 'Public IPv6 address too, or nothing',
    preset: '',
    expected: 'a public IPv6 address',
    accepts: (text) => text === '' || isAddress6(text),
  },
  tcpPort: { option: '--tcp-port', question: 'TCP port', preset: '2641', ...PORT },
  udpPort: {
    option: '--udp-port',
    question: 'UDP port, 0 for none',
    preset: '2641',
    expected: `a port from 0 to ${MAX_PORT}`,
    accepts: (text) => text === '0' || isPort(text),
  },
  httpPort: { option: '--http-port', question: 'HTTP port', preset: '8000', ...PORT },
  organization: {
    option: '--organization',
    question: 'Name of the organization',
    expected: 'the name of the organization, at most 200 characters',
    accepts: TEXT,
  },
  email: {
    option: '--email',
    question: 'E-mail address of the contact',
    expected: 'an e-mail address',
    accepts: /^[^@\s"\\]{1,64}@[^@\s"\\]{1,100}\.[^@\s"\\.]{1,63}$/,
  },
  contact: {
    option: '--contact',
    question: 'Name of the contact, or nothing',
    preset: '',
    expected: 'a name of at most 200 characters',
    accepts: OPTIONAL_TEXT,
  },
  phone: {
    option: '--phone',
    question: 'Phone number, or nothing',
    preset: '',
    expected: 'digits, spaces, hyphens and parentheses, without +',
    accepts: /^[\d ()-]{0,50}$/,
  },
  description: {
    option: '--description',
    question: 'Description of the service, or nothing for the organization',
    preset: '',
    expected: 'a description of at most 200 characters',
    accepts: OPTIONAL_TEXT,
  },
  prefix: {
    option: '--prefix',
    question: 'Prefix, or nothing if the registry has not assigned it yet',
    preset: '',
    expected: 'a prefix such as 21.T11998, without a slash',
    accepts: /^$|^[0-9A-Za-z][0-9A-Za-z.-]{0,99}$/,
  },
};

export const isAccepted = ({ accepts }: Field, text: string): boolean =>
  typeof accepts === 'function' ? accepts(text) : accepts.test(text);
