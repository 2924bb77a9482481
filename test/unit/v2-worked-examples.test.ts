import { describe, expect, it } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { sent, toV2 } from '../support/v2-values.js';

const TIMESTAMP = '2013-11-26T11:58:14Z';

const upstream: HandleValue[] = [
  {
    index: 100,
    type: 'HS_ADMIN',
    data: { format: 'admin', value: { handle: '0.NA/11239', index: 300, permissions: '011111110011' } },
    ttl: 86400,
  },
  { index: 1, type: 'URL', data: { format: 'string', value: 'http://www.grnet.gr/' }, ttl: 86400 },
  { index: 3, type: 'INST', data: { format: 'string', value: 'CLARIN-EL' }, ttl: 86400 },
];

const common = { timestamp: TIMESTAMP, ttl_type: 0, ttl: 86400, refs: [], privs: 'rwr-' };
const perms = {
  add_handle: true,
  delete_handle: true,
  add_naming_auth: false,
  delete_naming_auth: false,
  modify_value: true,
  remove_value: true,
  add_value: true,
  read_value: true,
  modify_admin: true,
  remove_admin: true,
  add_admin: true,
  list_handles: false,
};
const v2 = [
  {
    idx: 1,
    type: 'URL',
    parsed_data: 'http://www.grnet.gr/',
    data: 'aHR0cDovL3d3dy5ncm5ldC5nci8=',
    ...common,
  },
  { idx: 3, type: 'INST', parsed_data: 'CLARIN-EL', data: 'Q0xBUklOLUVM', ...common },
  {
    idx: 100,
    type: 'HS_ADMIN',
    parsed_data: { adminId: '0.NA/11239', adminIdIndex: 300, perms },
    data: 'B/MAAAAKMC5OQS8xMTIzOQAAASw=',
    ...common,
  },
];

describe('ePIC v2 documentation example', () => {
  describe('documented record', () => {
    it('is returned as documented, including the member order', () => {
      const shown = toV2(upstream.map((value) => ({ ...value, timestamp: TIMESTAMP })));
      expect(JSON.stringify(shown)).toBe(JSON.stringify(v2));
    });

    it('is sent upstream as its original values', () => {
      const [admin, ...others] = upstream;
      expect(sent(v2)).toEqual([...others, admin]);
    });

    it('may contain line feeds in its base64 data', () => {
      const text = 'https://example.org/'.repeat(10);
      const data = Buffer.from(text).toString('base64').replace(/.{60}/g, '$&\n');
      expect(data).toContain('\n');
      const long = { idx: 1, type: 'DESC', parsed_data: text };
      expect(sent([{ ...long, data }])).toEqual(sent([long]));
    });

    it('may use the permission names of version 8', () => {
      const { add_naming_auth, delete_naming_auth, ...others } = perms;
      const newer = {
        ...others,
        add_derived_prefix: add_naming_auth,
        delete_derived_prefix: delete_naming_auth,
      };
      const parsed_data = { adminId: '0.NA/11239', adminIdIndex: '300', perms: newer };
      expect(sent([{ idx: 100, type: 'HS_ADMIN', parsed_data }])).toEqual([upstream[0]]);
    });
  });

  it('has a body that is converted to a URL at index 1 and an administrator at index 100', () => {
    expect(sent([{ type: 'URL', parsed_data: 'http://www.grnet.gr/' }])).toEqual([
      upstream[1],
      {
        index: 100,
        type: 'HS_ADMIN',
        data: { format: 'admin', value: { handle: '0.NA/21.T1', index: 300, permissions: '011111110011' } },
        ttl: 86400,
      },
    ]);
  });
});
