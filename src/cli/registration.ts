// The fields of the `register` command (option, prompt, default, validation), and the files that it writes.
import { isIPv4, isIPv6 } from 'node:net';
import { zipSync } from 'fflate';
import { type SiteJson, type SiteServer, decodePublicKey, encodeSite } from '../handle/value-data.js';

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

/** A Handle service to register. */
export interface HandleService {
  address: string;
  /** Additional IPv6 address of a service whose `address` is IPv4. */
  address6: string | undefined;
  /** `udp` is 0 for a service without UDP. */
  ports: { tcp: number; udp: number; http: number };
  serialNumber: number;
  description: string;
  contact: { organization: string; email: string; name: string | undefined; phone: string | undefined };
  /** Undefined until the registry has assigned a prefix. */
  prefix: string | undefined;
}

/** Public key files (HS_PUBKEY data). */
export interface PublicKeys {
  server: Buffer;
  administrator: Buffer;
}

/**
 * Builds the files of a primary site. The registry receives only `sitebndl.zip`, whose entry names, and the
 * placeholder `YOUR_PREFIX`, match CNRI's set-up tool.
 *
 * @throws RangeError when a key is invalid
 */
export function registrationFiles(
  service: HandleService,
  keys: PublicKeys,
  now: Date,
): Record<'siteinfo.json' | 'siteinfo.bin' | 'contactdata.dct' | 'sitebndl.zip', Buffer> {
  const site = siteOf(service, keys.server);
  const binary = encodeSite(site);
  const contact = Buffer.from(contactData(service.contact));
  const administrator = Buffer.from(`300:0.NA/${service.prefix ?? 'YOUR_PREFIX'}\n`);
  const bundle = {
    repl_admin: administrator,
    'admpub.bin': keys.administrator,
    'siteinfo.bin': binary,
    'contactdata.dct': contact,
  };
  return {
    'siteinfo.json': Buffer.from(JSON.stringify(site, undefined, 2)),
    'siteinfo.bin': binary,
    'contactdata.dct': contact,
    'sitebndl.zip': Buffer.from(zipSync(bundle, { mtime: now })),
  };
}

function siteOf(
  { description, address, address6, serialNumber, ports }: HandleService,
  key: Buffer,
): SiteJson {
  return {
    version: 1,
    protocolVersion: '2.11',
    serialNumber,
    primarySite: true,
    multiPrimary: false,
    attributes: [
      { name: 'desc', value: description },
      ...(address6 === undefined ? [] : [{ name: 'alt_addr.1', value: address6 }]),
    ],
    servers: [
      {
        serverId: 1,
        address,
        publicKey: { format: 'key', value: decodePublicKey(key) },
        interfaces: serviceInterfaces(ports),
      },
    ],
  };
}

/** Announces administration like the set-up tool, because registries might reject a site without it. */
const serviceInterfaces = ({ tcp, udp, http }: HandleService['ports']): SiteServer['interfaces'] => [
  { query: true, admin: true, protocol: 'TCP', port: tcp },
  ...(udp === 0 ? [] : [{ query: true, admin: false, protocol: 'UDP', port: udp }]),
  { query: true, admin: true, protocol: 'HTTP', port: http },
];

/** Writes CNRI's StreamTable format. */
function contactData({ organization, email, name, phone }: HandleService['contact']): string {
  const fields = { org_name: organization, contact_email: email, contact_name: name, contact_phone: phone };
  const lines = Object.entries(fields).flatMap(([key, value]) =>
    value === undefined ? [] : [`  "${key}" = "${value.replace(/["\\]/g, '\\$&')}"`],
  );
  return `${['{', ...lines, '}'].join('\n')}\n`;
}
