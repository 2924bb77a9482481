// Resolutions of private values: the Handle server decides, and its response is not cached.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ENVELOPE_BYTES, OP_FLAG, decodeEnvelope, readMessage } from '../../src/plugins/native/codec.js';
import { useNock } from '../support/nock.js';
import { PUBLIC, askNative, codeOf, indexesIn, nativeRequest } from '../support/native-messages.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

const ALL = PUBLIC & ~OP_FLAG.publicOnly;
const REFUSED = { status: 403, body: { responseCode: 402, handle: HANDLE } };
const serverWith = (whole: typeof REFUSED | ReturnType<typeof recordOf>) =>
  mockUpstream((target) => (target.includes('publicOnly=false') ? whole : recordOf()));

describe('native resolution of public and private values', () => {
  it('returns all values when none is private', async () => {
    const upstream = serverWith(recordOf());
    const { app } = await startProxy();
    expect(indexesIn(await askNative(app.native, HANDLE, { flags: ALL }))).toEqual([1, 2, 3]);
    expect(upstream.targets).toEqual([`${PATH}?publicOnly=false`]);
  });

  it('returns a challenge with digest, nonce and session when a private value matches', async () => {
    serverWith(REFUSED);
    const { app } = await startProxy();
    const { envelope, header, body } = await askNative(app.native, HANDLE, { flags: ALL });
    expect(header.responseCode).toBe(402);
    expect(header.flags & OP_FLAG.returnDigest).not.toBe(0);
    expect(envelope.sessionId).toBeGreaterThan(0);
    expect(body.kind === 'challenge' && body.nonce).toHaveLength(16);
  });

  it('returns the nonce and then the digest with its length in protocol versions before 2.1', async () => {
    serverWith(REFUSED);
    const { app } = await startProxy();
    const bytes = nativeRequest(HANDLE, { flags: ALL, version: { major: 2, minor: 0 } });
    const envelope = { ...decodeEnvelope(bytes), suggested: { major: 2, minor: 0 } };
    const message = bytes.subarray(ENVELOPE_BYTES);
    const { reply } = await app.native.answer({ envelope, message, transport: 'tcp', received: bytes });
    const { body } = readMessage(reply.message);
    const digest = createHash('md5').update(message.subarray(0, -4)).digest();
    const [nonceBytes, digestBytes] = [body.readInt32BE(0), body.readInt32BE(20)];
    expect([nonceBytes, digestBytes, body.length]).toEqual([16, 16, 40]);
    expect(body.subarray(24)).toEqual(digest);
  });

  it('returns a challenge when the Handle server requires a login with 401, as over HTTPS', async () => {
    serverWith({ ...REFUSED, status: 401 });
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE, { flags: ALL }))).toBe(402);
  });

  it('reports an expired session for a challenge response', async () => {
    const { app } = await startProxy();
    const response = await askNative(app.native, '', { opCode: 200, sessionId: 77 });
    expect([codeOf(response), response.envelope.sessionId]).toEqual([500, 77]);
  });

  it('is served from the cache when all requested indexes are public', async () => {
    const upstream = serverWith(REFUSED);
    const { app } = await startProxy();
    await askNative(app.native, HANDLE);
    expect(indexesIn(await askNative(app.native, HANDLE, { flags: ALL, indexes: [3, 1] }))).toEqual([1, 3]);
    expect(upstream.asked).toBe(1);
    expect(codeOf(await askNative(app.native, HANDLE, { flags: ALL, indexes: [1, 9] }))).toBe(402);
  });

  it('forwards the selection to the Handle server, which decides on the matches', async () => {
    const upstream = serverWith(recordOf());
    const { app } = await startProxy();
    const question = { flags: ALL, indexes: [2], types: ['URL', 'Ä&b'] };
    expect(indexesIn(await askNative(app.native, HANDLE, question))).toEqual([1, 2]);
    expect(upstream.targets).toEqual([`${PATH}?publicOnly=false&index=2&type=URL&type=%C3%84%26b`]);
  });

  it('is not cached when it includes private values', async () => {
    const upstream = serverWith(recordOf());
    const { app } = await startProxy();
    await askNative(app.native, HANDLE, { flags: ALL });
    await askNative(app.native, HANDLE, { flags: ALL });
    await askNative(app.native, HANDLE);
    expect(upstream.asked).toBe(3);
  });

  it('returns code 100 for an unknown handle', async () => {
    mockUpstream(notFound());
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE, { flags: ALL }))).toBe(100);
  });
});
