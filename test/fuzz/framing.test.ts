// Request framing: whatever bytes clients send, the Handle server receives only requests that the proxy
// decided to send, each with an unambiguous end, and every response reaches its client. `npm run fuzz`
// sends far more requests.
import '../support/real-sockets.js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { fixed } from '../support/fixed.js';
import {
  type RecordedRequest,
  type RecordingUpstream,
  jsonReply,
  startRecordingUpstream,
} from '../support/recording-upstream.js';
import { unexplained } from './decided.js';
import { type Stream, answersTo, streamFor } from './framing.js';
import { type Mark, marksIn } from './marks.js';
import { randomFrom } from '../support/random.js';
import { sendAndReceive } from './requests.js';
import { readWellFormed } from './well-formed.js';

const COUNT = Number(process.env['FUZZ_REQUESTS'] ?? 1500);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
vi.setConfig({ testTimeout: 180_000 + COUNT * 20 });

const AT_A_TIME = 16;

/** Returns a response with the request target, which reveals a response sent to the wrong client. */
function answerWith({ method, target }: RecordedRequest): string {
  const values = [{ index: 1, type: 'URL', data: { format: 'string', value: target }, ttl: 86400 }];
  const handle = decodeURIComponent(/^\/api\/handles\/([^?]*)/.exec(target)?.[1] ?? '');
  const record = { responseCode: 1, handle, values, totalCount: '0', handles: [] };
  const reply = jsonReply(target.startsWith('/hrls') ? JSON.stringify([target]) : JSON.stringify(record));
  return method === 'HEAD' ? reply.slice(0, reply.indexOf('\r\n\r\n') + 4) : reply;
}

interface Exchanged {
  streams: Stream[];
  /** Wrong data received by clients. */
  complaints: string[];
  statuses: Map<number, number>;
}

async function exchangeAll(url: string): Promise<Exchanged> {
  const exchanged: Exchanged = { streams: [], complaints: [], statuses: new Map() };
  const { streams, complaints, statuses } = exchanged;
  let sent = 0;
  const work = async (): Promise<void> => {
    while (sent < COUNT) {
      const stream = streamFor(streams.length, SEED);
      streams.push(stream);
      sent += stream.requests.length;
      const quietMs = stream.isClean ? Infinity : undefined;
      const received = await sendAndReceive(url, stream.bytes, randomFrom(stream.connection), quietMs);
      const answers = readWellFormed(received).statuses;
      for (const status of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const count = answers.filter((status) => status !== 100).length;
      if (stream.isClean && count !== answersTo(stream)) {
        complaints.push(`connection ${stream.connection} got ${count} answers`);
      }
      const foreign = marksIn(received.toString('latin1')).find(
        ({ connection }) => connection !== stream.connection,
      );
      if (foreign) complaints.push(`connection ${stream.connection} received ${foreign.text}`);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return exchanged;
}

/**
 * Describes forbidden upstream requests: smuggled, repeated or altered requests from clean streams, and
 * forged client addresses.
 */
function complaintsAbout({ requests }: RecordingUpstream, streams: readonly Stream[]): string[] {
  const bodies = new Map<string, string>();
  for (const stream of streams.filter(({ isClean }) => isClean)) {
    for (const { mark, body } of stream.requests) bodies.set(mark, body);
  }
  const seen = new Set<string>();
  const complaintsAboutMark = (request: RecordedRequest, { text, isInside }: Mark): string[] => {
    const line = `${request.method} ${request.target}`;
    if (isInside) return [`a body became the request ${line}`];
    if (!isPassedOn(request)) return [];
    const isSecond = seen.has(text);
    seen.add(text);
    if (isSecond) return [`twice: ${line}`];
    return request.body === bodies.get(text) ? [] : [`another body: ${line}`];
  };
  return requests.flatMap((request) => [
    ...marksIn(request.target)
      .filter(({ connection }) => streams[connection]?.isClean === true)
      .flatMap((mark) => complaintsAboutMark(request, mark)),
    ...spoofedIn(request),
  ]);
}

/** Describes forged client addresses. All clients have one address, which is not a trusted proxy. */
function spoofedIn({ headers }: RecordedRequest): string[] {
  const peer = headers['x-forwarded-for']?.join() ?? '127.0.0.1';
  const names = ['forwarded', 'x-real-ip', 'x_forwarded_for'].filter((name) => name in headers);
  return peer === '127.0.0.1' && names.length === 0 ? [] : [`spoofed: ${peer} ${names.join()}`];
}

/** Whether the request is the proxy's own: a probe at start, or a read of a prefix record for a redirect. */
const isOwn = (request: RecordedRequest): boolean =>
  !isPassedOn(request) && /^\/(?:api\/handles\/0\.NA\/|api\/site$|hrls\/ping$)/.test(request.target);

/** Whether the request was forwarded for a client. */
const isPassedOn = ({ headers }: RecordedRequest): boolean => headers['x-forwarded-for'] !== undefined;

describe('proxy with fuzzed request framing (smuggling)', () => {
  test(`forwards only requests that it logs, out of ${COUNT} mutated or ambiguous requests`, async () => {
    const upstream = await startRecordingUpstream(answerWith);
    onTestFinished(upstream.close);
    const proxy = await startBuiltProxy({
      UPSTREAM_URL: upstream.url,
      REVERSE_LOOKUP_URL: upstream.url,
      // A search would otherwise verify the login by a separate read.
      REVERSE_LOOKUP_FORWARD_LOGIN: 'true',
      DELETION_HANDLES: 'true',
      DELETION_VALUES: 'true',
      LOG_REQUESTS: 'all',
      ...fixed({
        server: { headersTimeoutMs: 2000, requestTimeoutMs: 4000 },
        upstream: { connections: 4, breaker: { failures: 10_000 } },
      }),
    });
    const { streams, complaints, statuses } = await exchangeAll(proxy.url);
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
    const connections = new Set(upstream.requests.map(({ connection }) => connection)).size;
    const passedOn = upstream.requests.filter(isPassedOn).length;
    const shown = [...statuses].sort(([one], [other]) => one - other);
    process.stdout.write(
      `seed ${SEED}: ${streams.reduce((sum, { requests }) => sum + requests.length, 0)} requests on ${streams.length} ` +
        `connections, ${upstream.requests.length} at the upstream on ${connections}, ${passedOn} of them passed on; ` +
        `${shown.map(([status, times]) => `${status}: ${times}`).join(', ')}\n`,
    );
    const isCertain = (key: string): boolean =>
      marksIn(key.toLowerCase()).some(({ connection }) => streams[connection]?.isClean === true);
    expect(upstream.violations()).toEqual([]);
    expect(complaintsAbout(upstream, streams)).toEqual([]);
    expect(complaints).toEqual([]);
    expect(
      unexplained(
        proxy.logs(),
        upstream.requests.filter((request) => !isOwn(request)),
        isCertain,
      ),
    ).toEqual([]);
    expect(proxy.logs().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    expect(statuses.get(500) ?? 0).toBe(0);
    for (const status of [200, 400, 431]) expect(statuses.get(status), String(status)).toBeGreaterThan(0);
    expect(passedOn).toBeGreaterThan(COUNT / 20);
  });
});
