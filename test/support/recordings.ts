// Reads requests recorded from a Handle.Net 9.3.1 server, and replays them exactly.
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';

export type Header = [name: string, value: string];

/** A recorded exchange, which may depend on earlier exchanges. */
export interface Recording {
  name: string;
  /** False for plain http, over which the real server ignores credentials. */
  secure: boolean;
  request: { method: string; path: string; headers: Header[]; body?: string };
  response: {
    status: number;
    headers: Header[];
    /** Null for pages, undefined for compressed bodies. */
    body?: string | null;
    bodyBase64?: string;
    /** Whether the body is a page, whose text was not recorded. */
    html?: boolean;
  };
}

/** A response, normalised for comparison. */
export interface Answer {
  status: number;
  headers: string[];
  body: string | null;
}

const fixture = new URL('../fixtures/handle-server.json', import.meta.url);
export const handleServerRecordings = JSON.parse(readFileSync(fixture, 'utf8')) as Recording[];

/** Sends a recorded request with the same raw target and bytes over a new connection. */
export async function replay(recording: Recording, { baseUrl }: { baseUrl: string }): Promise<Answer> {
  const { method, path, headers, body } = recording.request;
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { hostname, port, method, path: asRawBytes(path), headers: grouped(headers), agent: false },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const { statusCode = 0, rawHeaders } = incoming;
          resolve(asAnswer(statusCode, pairs(rawHeaders), Buffer.concat(chunks)));
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body === undefined ? undefined : bodyBytes(body, headers));
  });
}

/** Returns the recorded response. */
export function recordedAnswer({ response }: Recording): Answer {
  const { status, headers, body, bodyBase64 = '' } = response;
  return asAnswer(status, headers, body == null ? Buffer.from(bodyBase64, 'base64') : Buffer.from(body));
}

/** Drops a page's text, which was not recorded. */
export function withoutPageText(answer: Answer, { response }: Recording): Answer {
  if (response.html !== true) return answer;
  return {
    ...answer,
    headers: answer.headers.filter((line) => !line.startsWith('content-length')),
    body: null,
  };
}

/** Groups headers by name, so that repeated names are sent as separate lines. */
function grouped(headers: Header[]): Record<string, string[]> {
  const values: Record<string, string[]> = {};
  for (const [name, value] of headers) (values[name] ??= []).push(value);
  return values;
}

/** Converts a path to one character per byte, as Node expects. */
const asRawBytes = (path: string): string => Buffer.from(path, 'utf8').toString('latin1');

function bodyBytes(body: string, headers: Header[]): Buffer {
  const isLatin1 = headers.some(([, value]) => value.includes('charset=iso-8859-1'));
  return Buffer.from(body, isLatin1 ? 'latin1' : 'utf8');
}

const pairs = (rawHeaders: string[]): Header[] =>
  Array.from({ length: rawHeaders.length / 2 }, (_, at) => [rawHeaders[at * 2]!, rawHeaders[at * 2 + 1]!]);

/** Headers that describe the connection instead of the response. */
const OF_THE_CONNECTION = ['date', 'connection', 'keep-alive', 'transfer-encoding'];

function asAnswer(status: number, headers: Header[], bytes: Buffer): Answer {
  const isZipped = headers.some(([name]) => name.toLowerCase() === 'content-encoding');
  // The length of a gzip body depends on the compressor.
  const ignored = isZipped ? [...OF_THE_CONNECTION, 'content-length'] : OF_THE_CONNECTION;
  const lines = headers
    .map(([name, value]): Header => [name.toLowerCase(), value])
    .filter(([name]) => !ignored.includes(name))
    .map(([name, value]) => `${name}: ${value}`);
  const body = (isZipped ? gunzipSync(bytes) : bytes).toString('utf8');
  return { status, headers: lines.sort(), body: maskSignature(body) };
}

/** Masks the signature, which cannot be reproduced without the private key. */
const maskSignature = (body: string): string =>
  body.replace(/"serverSignature":"[A-Za-z0-9+/=]{344}"/, '"serverSignature":"…"');
