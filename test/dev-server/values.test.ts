// Values on the demo server, which reads and writes them like the classes of the real server.
import { describe, expect, it } from 'vitest';
import { valueFromJson, valueToJson } from '../../src/dev-server/value.js';

const stored = (members: object): ReturnType<typeof valueToJson> =>
  valueToJson(valueFromJson({ index: 1, type: 'X', data: 'x', ...members }, 0));

describe('value permissions', () => {
  it.each([
    ['1100', '1100'],
    ['0110', undefined],
    ['0010', '1010'],
    ['00110', '0110'],
    ['01010', '1010'],
    ['011', '1111'],
    ['10', undefined],
    ['1', undefined],
    ['', undefined],
    ['*', '1111'],
  ])('are converted from "%s" to %s when stored (the default 1110 is omitted)', (given, kept) => {
    expect(stored({ permissions: given }).permissions).toBe(kept);
  });
});

describe('value TTL', () => {
  it.each([
    [undefined, 86400],
    [-1, -1],
    [1.9, 1],
    ['2030-01-01', '2030-01-01T00:00:00Z'],
    ['2030-01-01T01:00:00.5+01:00', '2030-01-01T00:00:00Z'],
  ])('is converted from %s to %s when stored', (given, kept) => {
    expect(stored({ ...(given !== undefined && { ttl: given }) }).ttl).toBe(kept);
  });

  it('becomes a wrong date in 1933 when written as a string', () => {
    expect(stored({ ttl: '300' }).ttl).toMatch(/^1933-/);
  });

  it.each([null, true, 'soon'])('is rejected when written as %s', (ttl) => {
    expect(() => stored({ ttl })).toThrow('com.google.gson.JsonParseException');
  });
});

describe('value data', () => {
  it.each([
    [5, { format: 'string', value: '5' }],
    [true, { format: 'string', value: 'true' }],
    [
      { format: 'STRING', value: 'a' },
      { format: 'string', value: 'a' },
    ],
    [
      { format: 'hex', value: 'DEADBEEF00' },
      { format: 'base64', value: '3q2+7wA=' },
    ],
    [
      { format: 'hex', value: '61' },
      { format: 'string', value: 'a' },
    ],
    [
      { format: 'base64', value: 'YQ\n==' },
      { format: 'string', value: 'a' },
    ],
    [
      { format: 'string', value: 'a\u0014' },
      { format: 'base64', value: 'YRQ=' },
    ],
  ])('are converted from %j to %j when stored', (data, shown) => {
    expect(stored({ data }).data).toEqual(shown);
  });

  it('are returned decoded for the type HS_ADMIN, whatever the input format', () => {
    const data = { format: 'base64', value: 'B/MAAAAKMC5OQS8xMTIzOQAAASw=' };
    expect(stored({ type: 'HS_ADMIN', data }).data).toEqual({
      format: 'admin',
      value: { handle: '0.NA/11239', index: 300, permissions: '011111110011' },
    });
  });

  it.each([
    ['*', '111111111111'],
    [true, '111111111111'],
    [undefined, '000000000000'],
    ['11', '000000000011'],
    [11111110011, '011111110011'],
    [[true, false, true], '000000000101'],
  ])('are stored with administrator permissions converted from %j to %s', (permissions, shown) => {
    const data = { format: 'admin', value: { handle: 'a/b', index: 1, permissions } };
    expect(stored({ type: 'HS_ADMIN', data }).data).toMatchObject({ value: { permissions: shown } });
  });

  it('are returned as bytes if their format and type differ', () => {
    const data = { format: 'vlist', value: [{ handle: 'a/b', index: 1 }] };
    expect(stored({ data }).data).toEqual({ format: 'base64', value: 'AAAAAQAAAANhL2IAAAAB' });
  });

  it('are returned as text if they do not decode as their type', () => {
    expect(stored({ type: 'HS_ADMIN', data: 'nobody' }).data).toEqual({ format: 'string', value: 'nobody' });
  });

  it('retain the numbers of a DSA key', () => {
    const data = { format: 'key', value: { kty: 'DSA', y: '_w', p: 'Aw', q: 'BQ', g: 'Bw' } };
    expect(stored({ type: 'HS_PUBKEY', data }).data).toEqual(data);
  });

  it('retain the IPv6 address of a site', () => {
    const server = {
      serverId: 1,
      address: '2001:db8::1',
      interfaces: [{ query: true, admin: true, protocol: 'HTTPS', port: 8000 }],
    };
    const site = {
      version: 1,
      protocolVersion: '2.11',
      serialNumber: 1,
      primarySite: false,
      multiPrimary: true,
    };
    const data = { format: 'site', value: { ...site, servers: [server] } };
    expect(stored({ type: 'HS_SITE', data }).data).toMatchObject({
      value: { ...site, servers: [{ ...server, address: '2001:db8:0:0:0:0:0:1' }] },
    });
  });

  it.each([null, { value: 'x' }, { format: 'hex', value: 'abc' }, { format: 'admin', value: null }])(
    'are rejected when written as %j',
    (data) => {
      expect(() => stored({ data })).toThrow('com.google.gson.JsonParseException');
    },
  );
});
