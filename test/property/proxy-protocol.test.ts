// Headers of the PROXY protocol: any split is read the same, and nothing else is taken for a header.
import { describe, expect, it } from 'vitest';
import { parseProxyHeader } from '../../src/plugins/proxy-protocol/header.js';
import { SIGNATURE, binaryHeader } from '../support/proxy-header.js';
import { rounds } from '../support/property-rounds.js';
import { fc, test } from '../support/property.js';

const text = (line: string): Buffer => Buffer.from(`${line}\r\n`, 'latin1');

const port = fc.nat({ max: 65_535 });
const v1 = fc.oneof(
  fc.tuple(fc.ipV4(), port, port).map(([ip, from, to]) => text(`PROXY TCP4 ${ip} 192.0.2.1 ${from} ${to}`)),
  fc.tuple(fc.ipV6(), port, port).map(([ip, from, to]) => text(`PROXY TCP6 ${ip} ::1 ${from} ${to}`)),
  fc.stringMatching(/^[ -~]{0,90}$/).map((rest) => text(`PROXY UNKNOWN ${rest}`)),
);
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const more = fc.uint8Array({ maxLength: 1800 });
const v2 = fc
  .constantFrom(
    [0x20, 0x00, 0],
    [0x20, 0xff, 0],
    [0x21, 0x00, 0],
    [0x21, 0x11, 12],
    [0x21, 0x21, 36],
    [0x21, 0x31, 216],
  )
  .chain(([command = 0, family = 0, length = 0]) =>
    fc
      .tuple(bytes(length), more)
      .map(([addresses, fields]) => binaryHeader(command, family, Buffer.concat([addresses, fields]))),
  );
const valid = fc.oneof(v1, v2);

describe('a header of the PROXY protocol', () => {
  test.prop([valid, fc.uint8Array({ maxLength: 300 })], { numRuns: rounds(5000) })(
    'is incomplete until its last byte, and the bytes after it change nothing',
    (header, after) => {
      for (let length = 0; length < header.length; length++)
        if (parseProxyHeader(header.subarray(0, length)) !== 'incomplete') return false;
      const parsed = parseProxyHeader(header);
      expect(parsed).toMatchObject({ length: header.length });
      expect(parseProxyHeader(Buffer.concat([header, after]))).toEqual(parsed);
      return true;
    },
  );

  test.prop(
    [
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.string({ unit: 'binary', maxLength: 300 }).map((chars) => Buffer.from(chars)),
      ),
    ],
    {
      numRuns: rounds(5000),
    },
  )('is never found in other bytes', (given) => {
    const parsed = parseProxyHeader(Buffer.from(given));
    expect(['incomplete', 'invalid']).toContain(parsed);
  });

  test.prop([valid, fc.nat(), fc.nat({ max: 255 }), fc.nat()], { numRuns: rounds(5000) })(
    'with a changed byte is read to the end, incomplete or invalid, also in parts',
    (header, at, byte, cut) => {
      const changed = Buffer.from(header);
      changed[at % changed.length] = byte;
      const whole = parseProxyHeader(changed);
      if (typeof whole === 'object') expect(whole.length).toBeLessThanOrEqual(changed.length);
      const part = parseProxyHeader(changed.subarray(0, cut % (changed.length + 1)));
      if (part !== 'incomplete') expect(part).toEqual(whole);
    },
  );
});

describe('the client in a header', () => {
  const v6 = '20010db8000000000000000000000001';
  const addresses = (client: string, rest: number): Buffer =>
    Buffer.concat([Buffer.from(client, 'hex'), Buffer.alloc(rest)]);

  it.each<[string, Buffer, string | undefined]>([
    ['IPv4', text('PROXY TCP4 203.0.113.7 192.0.2.1 65535 0'), '203.0.113.7'],
    ['IPv6, in one spelling', text('PROXY TCP6 2001:DB8:0:0::1 ::1 1 443'), '2001:db8::1'],
    ['unknown', text('PROXY UNKNOWN'), undefined],
    ['unknown with addresses', text('PROXY UNKNOWN ffff::1 ffff::2 1 2'), undefined],
    ['binary IPv4', binaryHeader(0x21, 0x11, addresses('cb007107', 8)), '203.0.113.7'],
    ['binary IPv4 with fields', binaryHeader(0x21, 0x11, addresses('cb007107', 300)), '203.0.113.7'],
    ['binary IPv6', binaryHeader(0x21, 0x21, addresses(v6, 20)), '2001:db8::1'],
    ['LOCAL with an address', binaryHeader(0x20, 0x11, addresses('cb007107', 8)), undefined],
    ['a Unix socket', binaryHeader(0x21, 0x31, Buffer.alloc(216)), undefined],
    ['no address', binaryHeader(0x21, 0x00, Buffer.alloc(0)), undefined],
  ])('is that of %s', (_what, header, client) => {
    expect(parseProxyHeader(header)).toEqual({ length: header.length, client });
  });

  it.each<[string, Buffer]>([
    ['a request', Buffer.from('GET / HTTP/1.1\r\n')],
    ['a method that begins alike', Buffer.from('PROXYX / HTTP/1.1\r\n')],
    ['lower case', text('proxy TCP4 203.0.113.7 192.0.2.1 1 2')],
    ['another protocol', text('PROXY UDP4 203.0.113.7 192.0.2.1 1 2')],
    ['an address of the other family', text('PROXY TCP4 ::1 192.0.2.1 1 2')],
    ['a server of the other family', text('PROXY TCP6 ::1 192.0.2.1 1 2')],
    ['an IPv6 zone', text('PROXY TCP6 fe80::1%eth0 ::1 1 2')],
    ['leading zeros', text('PROXY TCP4 203.0.113.007 192.0.2.1 1 2')],
    ['a port too high', text('PROXY TCP4 203.0.113.7 192.0.2.1 65536 2')],
    ['a missing port', text('PROXY TCP4 203.0.113.7 192.0.2.1 1')],
    ['two spaces', text('PROXY TCP4  203.0.113.7 192.0.2.1 1 2')],
    ['LF alone', Buffer.from('PROXY UNKNOWN\nGET / HTTP/1.1\r\n')],
    ['a line of 108 bytes', text(`PROXY UNKNOWN ${'x'.repeat(92)}`)],
    ['a long line without an end', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(93)}`)],
    ['a wrong signature', Buffer.from('\r\n\r\n\0\r\nQUIT\r')],
    ['version 1 in binary', binaryHeader(0x11, 0x11, Buffer.alloc(12))],
    ['an unknown command', binaryHeader(0x22, 0x11, Buffer.alloc(12))],
    ['datagrams', binaryHeader(0x21, 0x12, Buffer.alloc(12))],
    ['too few bytes for its addresses', binaryHeader(0x21, 0x11, Buffer.alloc(11))],
    ['too few bytes for IPv6', binaryHeader(0x21, 0x21, Buffer.alloc(35))],
    ['too many bytes, before they arrive', Buffer.concat([SIGNATURE, Buffer.from([0x21, 0x11, 0xff, 0xff])])],
  ])('is not read from %s', (_what, header) => {
    expect(parseProxyHeader(header)).toBe('invalid');
  });

  it('is read from the longest headers', () => {
    const line = text(`PROXY UNKNOWN ${'x'.repeat(91)}`);
    expect(line).toHaveLength(107);
    expect(parseProxyHeader(line)).toEqual({ length: 107, client: undefined });
    const binary = binaryHeader(0x21, 0x11, addresses('cb007107', 2048 - 16 - 4));
    expect(parseProxyHeader(binary)).toEqual({ length: 2048, client: '203.0.113.7' });
    expect(parseProxyHeader(binaryHeader(0x21, 0x11, Buffer.alloc(2048 - 15)))).toBe('invalid');
  });
});
