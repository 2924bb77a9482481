// Recorded native requests: responses equal the recordings byte for byte, except where a cache must differ.
import { describe, expect, it } from 'vitest';
import { ENVELOPE_BYTES, decodeEnvelope, frame } from '../../src/plugins/native/codec.js';
import { RESPONSE_CODE } from '../../src/handle/outcome.js';
import { type Asked, ask } from '../support/ask.js';
import { type NativeExchange, assembled, bytesOf, native } from '../support/native-recordings.js';
import { mockRecordedServer } from '../support/native-upstream.js';
import { useNock } from '../support/nock.js';
import { askTcp, exchangeTcp, exchangeUdp } from '../support/native-client.js';
import { type Proxy, startProxy } from '../support/proxy.js';

useNock();

const RESPONSE_CODE_AT = ENVELOPE_BYTES + 4;
const codeOf = (answer: Buffer): number => answer.readInt32BE(RESPONSE_CODE_AT);

/**
 * Clears the fields that a cache sets differently: expiration, site serial number, authoritative and truncated
 * flags, and in a challenge the session and the nonce.
 */
function comparable(answer: Buffer): Buffer {
  const bytes = Buffer.from(answer);
  bytes[2] = bytes[2]! & ~0x20;
  bytes[ENVELOPE_BYTES + 8] = bytes[ENVELOPE_BYTES + 8]! & ~0x80;
  bytes.fill(0, ENVELOPE_BYTES + 12, ENVELOPE_BYTES + 14);
  bytes.fill(0, ENVELOPE_BYTES + 16, ENVELOPE_BYTES + 20);
  if (codeOf(bytes) !== RESPONSE_CODE.authenticationNeeded) return bytes;
  // The credential length follows the nonce.
  return bytes.fill(0, 4, 8).fill(0, bytes.length - 20);
}

/** Requests that a primary server answers differently, because it signs, administers and has sessions. */
const OTHERWISE: [name: RegExp, responseCode: number][] = [
  [/CERT|all flags on/, RESPONSE_CODE.error],
  [/CREATE_|DELETE_|ADD_VALUE|REMOVE_|LIST_|HOME_NA|TXN|DUMP_/, RESPONSE_CODE.operationNotSupported],
  [/SESSION_|_CHALLENGE/, RESPONSE_CODE.error],
  // The recorded texts contain Java exceptions.
  [/^http: bad: .*(body|count|credential|response code)|sent as request/, RESPONSE_CODE.protocolError],
  // HDLProxy responds with code 2, and this proxy with the code of its Handle server.
  [/HDLProxy: prefix unknown/, RESPONSE_CODE.notResponsible],
  [/HDLProxy: GET_SITE_INFO/, RESPONSE_CODE.success],
  // HDLProxy requests the site values first, and returns the values in that order.
  [/HDLProxy: prefix handle/, RESPONSE_CODE.success],
];
/** Messages accepted although their body length differs from the header. */
const ACCEPTED = ['http: bad: body length 0', 'http: bad: no credential length at all'];

const otherCode = ({ name }: NativeExchange): number | undefined =>
  ACCEPTED.includes(name) ? undefined : OTHERWISE.find(([pattern]) => pattern.test(name))?.[1];

/**
 * Whether the record changed after this message: it was rewritten for each of three sizes, and only the last
 * JSON is recorded.
 */
const isOutdated = ({ name }: NativeExchange): boolean => /pad 40[79]/.test(name);

const recordedAnswer = ({ response }: NativeExchange): Buffer =>
  Buffer.concat([bytesOf(response[0]!).subarray(0, ENVELOPE_BYTES), assembled(response)!]);

function expectAnswer(exchange: NativeExchange, answer: Buffer): void {
  const other = otherCode(exchange);
  if (other !== undefined) expect(codeOf(answer), exchange.name).toBe(other);
  else {
    const [given, recorded] = [answer, recordedAnswer(exchange)].map((bytes) =>
      comparable(bytes).toString('hex'),
    );
    expect(given, exchange.name).toBe(recorded);
  }
}

let proxy: Proxy;
const SITE = { NATIVE_SITE_HANDLE: '0.NA/21.T11998' };

describe('recorded native messages', () => {
  /** Whether the listeners handle the message, not the codec: truncated, odd or pipelined messages. */
  const isForListener = ({ name }: NativeExchange): boolean =>
    /message length 23|of 400 bytes|two requests/.test(name);
  const whole = native.exchanges.filter(
    (one) =>
      one.transport !== 'http' &&
      assembled(one.request) !== undefined &&
      assembled(one.response) !== undefined &&
      !isOutdated(one) &&
      !isForListener(one),
  );

  it(`receive the ${whole.length} recorded responses`, async () => {
    const upstream = mockRecordedServer();
    proxy = await startProxy(SITE);
    for (const exchange of whole) {
      const { request, transport } = exchange;
      const envelope = decodeEnvelope(bytesOf(request[0]!));
      const incoming = { envelope, message: assembled(request)!, transport: transport as 'tcp' | 'udp' };
      const received = bytesOf(request[0]!);
      const { reply } = await proxy.app.native.answer({ ...incoming, received });
      expectAnswer(exchange, frame(reply.envelope, reply.message));
    }
    // Each handle is loaded once, except for a TTL of 0, rejections, and requests for private values.
    const keys = upstream.targets.map((target) => target.toUpperCase().replace('/API/HANDLES/', ''));
    const repeated = new Set(keys.filter((key, at) => keys.indexOf(key) !== at && !key.includes('?')));
    expect([...repeated]).toEqual(['21.T11998/REC-TTL', '99.NOPE/X', '0.NA/21.T7REF.SUB']);
  });
});

describe('prepared native responses', () => {
  it('equal the recorded responses', async () => {
    mockRecordedServer();
    const { native: asked } = (await startProxy(SITE)).app;
    let compared = 0;
    for (const exchange of native.exchanges.filter(({ transport }) => transport === 'tcp')) {
      if (assembled(exchange.request) === undefined || isOutdated(exchange)) continue;
      const received = bytesOf(exchange.request[0]!);
      const message = received.subarray(ENVELOPE_BYTES);
      for (let times = 0; times < 2; times++) {
        await asked.answer({ envelope: decodeEnvelope(received), message, transport: 'tcp', received });
      }
      const prepared = asked.answerPrepared(received, 'tcp');
      if (prepared === undefined) continue;
      expectAnswer(exchange, prepared);
      compared++;
    }
    expect(compared).toBeGreaterThan(60);
  });
});

describe('recorded native connections', () => {
  // The recorded server answers a silent client only after 5 minutes.
  const connections = native.exchanges.filter(
    (one) => one.transport === 'tcp' && one.response.length > 0 && !isOutdated(one),
  );

  it(`receive the ${connections.length} recorded responses and close`, async () => {
    mockRecordedServer();
    const { tcpPort } = await startProxy({ ...SITE, NATIVE_TCP_PORT: '0' });
    for (const exchange of connections) {
      const pieces = exchange.request.map(bytesOf);
      const isEnded = exchange.name.includes('half-close');
      expectAnswer(exchange, await exchangeTcp(tcpPort, pieces, { isEnded }));
    }
  });
});

describe('recorded native datagrams', () => {
  // Whether the request is incomplete, has two recorded responses, or has packets of a wrong size.
  const isOdd = ({ name, response }: NativeExchange): boolean =>
    response.length === 0 || /same request twice|two requests|of 400 bytes/.test(name);
  const questions = native.exchanges.filter(
    (one) => one.transport === 'udp' && !isOdd(one) && !isOutdated(one),
  );

  it(`receive the recorded responses to ${questions.length} requests in identical packets`, async () => {
    mockRecordedServer();
    const { udpPort, tcpPort } = await startProxy({ ...SITE, NATIVE_UDP_PORT: '0', NATIVE_TCP_PORT: '0' });
    // Only a sender verified over TCP gets responses in several packets.
    await askTcp(tcpPort, '21.T1/first');
    for (const exchange of questions) {
      const packets = await exchangeUdp(udpPort, exchange.request.map(bytesOf));
      const hex = packets.map((packet) => packet.toString('hex'));
      expectAnswer(exchange, Buffer.concat([packets[0]!.subarray(0, ENVELOPE_BYTES), assembled(hex)!]));
      if (otherCode(exchange) !== undefined) continue;
      const sizes = exchange.response.map((packet) => packet.length);
      expect(hex.map(({ length }) => length).sort(), exchange.name).toEqual(sizes.sort());
    }
  });
});

describe('recorded tunnel POSTs', () => {
  // HDLProxy responds to the excluded request with an error page.
  const posts = native.exchanges.filter(
    ({ name, httpRequest }) => httpRequest !== undefined && !name.includes('encrypted flag'),
  );
  const isTunnelled = ({ response }: NativeExchange): boolean => response.length > 0;

  function send({ request, httpRequest }: NativeExchange): Promise<Asked> {
    const { line, headers } = httpRequest!;
    const [method = '', path = ''] = line.split(' ');
    const body = method === 'GET' ? {} : { body: bytesOf(request[0] ?? '') };
    return ask(proxy.url, path, { method, headers: Object.fromEntries(headers), ...body });
  }

  it(`return ${posts.filter(isTunnelled).length} messages with status 200`, async () => {
    mockRecordedServer();
    proxy = await startProxy(SITE);
    for (const exchange of posts.filter(isTunnelled)) {
      const { status, headers, body } = await send(exchange);
      expect([status, headers['content-type']], exchange.name).toEqual([200, 'application/x-hdl-message']);
      expect([headers['content-length'], headers['transfer-encoding']]).toEqual([
        String(body.length),
        undefined,
      ]);
      expectAnswer(exchange, body);
    }
  });

  it('return no message when they are not for the tunnel', async () => {
    mockRecordedServer();
    proxy = await startProxy(SITE);
    for (const exchange of posts.filter((one) => !isTunnelled(one))) {
      const { headers } = await send(exchange);
      expect(headers['content-type'], exchange.name).not.toBe('application/x-hdl-message');
    }
  });
});
