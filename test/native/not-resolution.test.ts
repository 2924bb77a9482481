// Native requests other than plain resolutions: unsupported requests, the site record, the request digest.
import { createHash } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { decodeSite, encodeSite } from '../../src/handle/value-data.js';
import {
  ENVELOPE_BYTES,
  decodeEnvelope,
  OP_CODE,
  OP_FLAG,
  UNKNOWN_SERIAL,
} from '../../src/plugins/native/codec.js';
import { useNock } from '../support/nock.js';
import { PUBLIC, askNative, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

describe('unsupported native request', () => {
  it.each([100, 101, 102, 103, 104, 105, 300, 301, 302, 1000, 1001, 1002, 1003])(
    'returns code 5 for administrative opcode %i',
    async (opCode) => {
      const { app } = await startProxy();
      const response = await askNative(app.native, HANDLE, { opCode, requestId: 77 });
      expect([codeOf(response), response.header.opCode, response.envelope.requestId]).toEqual([
        5,
        opCode,
        77,
      ]);
    },
  );

  it.each([200, 201, 400, 401, 402])('returns code 2 for login opcode %i', async (opCode) => {
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE, { opCode }))).toBe(2);
  });

  it('returns code 2, and queries no upstream, when it asks for a signed response', async () => {
    const upstream = mockUpstream();
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE, { flags: PUBLIC | OP_FLAG.certify }))).toBe(2);
    expect(upstream.asked).toBe(0);
  });

  it.each([
    [0, 501],
    [9, 500],
  ])('when encrypted with session %i, is rejected with code %i', async (sessionId, code) => {
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE, { sessionId, isEncrypted: true }))).toBe(code);
  });
});

describe('native site record', () => {
  const info = { opCode: OP_CODE.siteInfo };

  it('from the configuration is for queries only', async () => {
    const { app } = await startProxy({
      NATIVE_SITE_ADDRESS: '192.0.2.7',
      NATIVE_SITE_DOMAIN: 'pid.example.org',
      NATIVE_SITE_INTERFACES: 'udp:2641, tcp:2641, https:443',
      NATIVE_SITE_SERIAL_NUMBER: '3',
    });
    const { header, body } = await askNative(app.native, '/', info);
    expect([header.responseCode, header.siteSerial]).toEqual([1, 3]);
    const site = decodeSite(body.kind === 'site' ? body.site : Buffer.alloc(0));
    expect(site).toMatchObject({ primarySite: false, serialNumber: 3 });
    expect(site.attributes).toContainEqual({ name: 'domain', value: 'pid.example.org' });
    expect(site.servers[0]).toMatchObject({ serverId: 1, address: '192.0.2.7' });
    expect(site.servers[0]!.interfaces).toEqual([
      { query: true, admin: false, protocol: 'UDP', port: 2641 },
      { query: true, admin: false, protocol: 'TCP', port: 2641 },
      { query: true, admin: false, protocol: 'HTTPS', port: 443 },
    ]);
  });

  it.each([
    ['an address', { NATIVE_SITE_ADDRESS: '192.0.2.7' }, '192.0.2.7'],
    ['a host name, which clients then resolve,', { NATIVE_SITE_DOMAIN: 'pid.example.org' }, '0.0.0.0'],
  ])('from the configuration needs only %s', async (_what, env, address) => {
    const { app } = await startProxy({ ...env, NATIVE_SITE_INTERFACES: 'tcp:2641' });
    const { body } = await askNative(app.native, '/', info);
    const { servers } = decodeSite(body.kind === 'site' ? body.site : Buffer.alloc(0));
    expect(servers.map((server) => server.address)).toEqual([address]);
  });

  const site = (primarySite: boolean, serialNumber: number) => ({
    version: 1,
    protocolVersion: '2.11',
    serialNumber,
    primarySite,
    multiPrimary: false,
    attributes: [],
    servers: [],
  });

  it('from a prefix record is the mirror site in it, whose serial number later responses include', async () => {
    const sites = [site(true, 4), site(false, 5)];
    const values = sites.map((value, at) => ({
      index: at + 1,
      type: 'HS_SITE',
      data: { format: 'site', value },
      ttl: 86400,
    }));
    mockUpstream((target) => recordOf(values, decodeURIComponent(target.slice('/api/handles/'.length))));
    const { app } = await startProxy({ NATIVE_SITE_HANDLE: '0.NA/21.T11998' });
    const received = nativeRequest(HANDLE);
    const [envelope, message] = [decodeEnvelope(received), received.subarray(ENVELOPE_BYTES)];
    for (let times = 0; times < 2; times++)
      await app.native.answer({ envelope, message, transport: 'tcp', received });
    const preparedSerial = (): number =>
      readResponse(app.native.answerPrepared(received, 'tcp')!).header.siteSerial;
    expect(preparedSerial()).toBe(UNKNOWN_SERIAL);
    const { body } = await askNative(app.native, '/', info);
    expect(body.kind === 'site' && body.site).toEqual(encodeSite(sites[1]));
    expect(preparedSerial()).toBe(5);
    expect((await askNative(app.native, HANDLE)).header.siteSerial).toBe(5);
  });

  it('from a large prefix record is parsed once', async () => {
    const text = { format: 'string', value: 'x'.repeat(100_000) };
    const values = [
      { index: 1, type: 'HS_SITE', data: { format: 'site', value: site(true, 4) }, ttl: 86400 },
      { index: 2, type: 'DESC', data: text, ttl: 86400 },
    ];
    mockUpstream((target) => recordOf(values, decodeURIComponent(target.slice('/api/handles/'.length))));
    const { app } = await startProxy({ NATIVE_SITE_HANDLE: '0.NA/21.T11998' });
    const siteSerial = async (): Promise<number> =>
      (await askNative(app.native, '/', info)).header.siteSerial;
    expect(await siteSerial()).toBe(4);
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => {
      parse.mockRestore();
    });
    expect(await siteSerial()).toBe(4);
    expect(parse.mock.calls.filter(([json]) => json.length > text.value.length)).toEqual([]);
  });

  it('is replaced by code 2 when none exists', async () => {
    const { app } = await startProxy();
    const { header } = await askNative(app.native, '/', info);
    expect([header.responseCode, header.siteSerial]).toEqual([2, UNKNOWN_SERIAL]);
  });
});

describe('digest of a native request', () => {
  it.each([
    [{ major: 2, minor: 11 }, 'sha256', 3],
    [{ major: 2, minor: 7 }, 'sha256', 3],
    [{ major: 2, minor: 6 }, 'sha1', 2],
    [{ major: 2, minor: 1 }, 'sha1', 2],
    [{ major: 2, minor: 0 }, 'md5', 0],
  ])('depends on the protocol version: %o uses %s', async (version, algorithm, code) => {
    mockUpstream();
    const { app } = await startProxy();
    const bytes = nativeRequest(HANDLE, { flags: PUBLIC | OP_FLAG.returnDigest });
    bytes.set([version.major, version.minor, version.major, version.minor]);
    const message = bytes.subarray(20);
    const { reply } = await app.native.answer({ envelope: decodeEnvelope(bytes), message, transport: 'tcp' });
    const digest = createHash(algorithm)
      .update(message.subarray(0, message.length - 4))
      .digest();
    expect(reply.message.subarray(24, 25 + digest.length)).toEqual(Buffer.concat([Buffer.of(code), digest]));
  });
});
