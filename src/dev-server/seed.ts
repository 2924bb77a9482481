// Initial records of a demo server under prefix 21.T11998: one of each kind that a resolver encounters.
import type { ValueReference } from '../handle/value.js';
import type { SiteJson } from '../handle/value-data.js';
import type { RecordInput } from './store.js';

export const DEMO_PREFIX = '21.T11998';
export const DEMO_PREFIXES: readonly string[] = ['0.NA', DEMO_PREFIX];
export const DEMO_SERVER_ADMINS: readonly ValueReference[] = [
  { handle: `${DEMO_PREFIX}/SERVERADMIN`, index: 300 },
];

/** The password of `300%3A21.T11998/USER01`, who may write. USER02 may not. */
export const DEMO_PASSWORD = 'password';

export const DEMO_SITE: SiteJson = {
  version: 1,
  protocolVersion: '2.11',
  serialNumber: 1,
  primarySite: true,
  multiPrimary: false,
  attributes: [{ name: 'desc', value: 'demo site' }],
  servers: [
    {
      serverId: 1,
      address: '127.0.0.1',
      publicKey: { format: 'base64', value: '' },
      interfaces: [{ query: true, admin: true, protocol: 'HTTP', port: 8000 }],
    },
  ],
};

export function textValue(index: number, type: string, value: string): Record<string, unknown> {
  return { index, type, data: { format: 'string', value } };
}

/** The group at index 200 of the prefix handle has nearly all permissions. */
export function adminValue(permissions = '011111110011'): Record<string, unknown> {
  const value = { handle: `0.NA/${DEMO_PREFIX}`, index: 200, permissions };
  return { index: 100, type: 'HS_ADMIN', data: { format: 'admin', value } };
}

export function userRecord(password: string): RecordInput {
  return [adminValue('111111111111'), { ...textValue(300, 'HS_SECKEY', password), permissions: '1100' }];
}

const prefixRecord: RecordInput = [
  adminValue('111111111111'),
  { index: 1, type: 'HS_SITE', data: { format: 'site', value: DEMO_SITE } },
  {
    index: 200,
    type: 'HS_VLIST',
    data: { format: 'vlist', value: [{ handle: `${DEMO_PREFIX}/USER01`, index: 300 }] },
  },
  textValue(2, 'DESC', 'demo prefix'),
];

const LOCATIONS =
  '<locations chooseby="locatt,country,weighted">' +
  '<location id="0" href="https://example.org/elsewhere" weight="0" />' +
  '<location id="1" href="https://example.org/located" weight="1" />' +
  '<location id="2" href="https://example.org/us" weight="0" country="us" /></locations>';

const url = (path: string): Record<string, unknown> => textValue(1, 'URL', `https://example.org/${path}`);

/** Returns all records by handle. The only absolute TTL ends an hour after `now`. */
export function demoRecords(now: number): Record<string, RecordInput> {
  const records: Record<string, RecordInput> = {
    page: [url('page'), adminValue()],
    DEMO: [
      url('demo'),
      textValue(2, 'EMAIL', 'curator@example.org'),
      textValue(3, 'DESC', 'A data set with several values'),
      textValue(4, 'URL.MIRROR', 'https://mirror.example.org/demo'),
      adminValue(),
    ],
    located: [
      textValue(1, '10320/loc', LOCATIONS),
      textValue(2, 'URL', 'https://example.org/fallback'),
      adminValue(),
    ],
    private: [
      url('private'),
      { ...textValue(2, 'NOTE', 'for administrators'), permissions: '1100' },
      adminValue(),
    ],
    alias: [textValue(1, 'HS_ALIAS', `${DEMO_PREFIX}/page`), adminValue()],
    'größe-漢字': [url('unicode'), textValue(2, 'DESC', 'Größe — 漢字 😀'), adminValue()],
    'folder/of things+more;v=1': [url('folder'), adminValue()],
    binary: [
      url('binary'),
      { index: 2, type: 'CHECKSUM', data: { format: 'base64', value: 'AAECAwT//v0=' } },
      adminValue(),
    ],
    'short-lived': [
      { ...url('short-lived'), ttl: 5 },
      { ...adminValue(), ttl: 5 },
    ],
    uncached: [{ ...url('uncached'), ttl: 0 }, adminValue()],
    'until-then': [{ ...url('until-then'), ttl: new Date(now + 3_600_000).toISOString() }, adminValue()],
    empty: [],
    USER01: userRecord(DEMO_PASSWORD),
    USER02: userRecord('secret2'),
    SERVERADMIN: userRecord('serveradmin'),
  };
  const named = Object.entries(records).map(([suffix, values]) => [`${DEMO_PREFIX}/${suffix}`, values]);
  return { [`0.NA/${DEMO_PREFIX}`]: prefixRecord, ...(Object.fromEntries(named) as typeof records) };
}
