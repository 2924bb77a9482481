// Checks that a connection carries only HTTP/1.1 responses.

const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/;
const HEADER = /^[!#$%&'*+\-.^_`|~\w]+: ?[^\r\n\0]*$/;

export interface Read {
  statuses: number[];
  /** Trailing bytes that form no complete response. */
  rest: string;
}

/**
 * Reads responses in sequence. Mutated bytes do not show which request was a HEAD, so a body may be missing
 * where the next response, or the end, follows immediately.
 *
 * @throws SyntaxError for an invalid status line, header or length
 */
export function readWellFormed(received: Buffer): Read {
  let rest = received.toString('latin1');
  const statuses: number[] = [];
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) break;
    const { status, headers } = readHead(rest.slice(0, end));
    const after = rest.slice(end + 4);
    const length = lengthOfBody(status, headers, after);
    if (length === undefined) break;
    statuses.push(status);
    rest = after.slice(length);
  }
  return { statuses, rest };
}

function readHead(text: string): { status: number; headers: Map<string, string> } {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = STATUS_LINE.exec(statusLine)?.[1];
  if (status === undefined) throw new SyntaxError(`no status line: ${statusLine.slice(0, 100)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    if (!HEADER.test(line)) throw new SyntaxError(`no header: ${line.slice(0, 100)}`);
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status: Number(status), headers };
}

const isWithoutBody = (status: number): boolean => status < 200 || status === 204 || status === 304;

/** Returns the body length, or undefined while the body is incomplete. */
function lengthOfBody(status: number, headers: Map<string, string>, after: string): number | undefined {
  const [length, encoding] = [headers.get('content-length'), headers.get('transfer-encoding')];
  if (length !== undefined && encoding !== undefined) throw new SyntaxError('two lengths');
  if (isWithoutBody(status) || after === '' || after.startsWith('HTTP/1.1 ')) return 0;
  if (encoding !== undefined) return lengthOfChunks(after);
  // The body lasts until the connection closes, as in HTTP/1.0.
  if (length === undefined) return after.length;
  if (!/^\d+$/.test(length)) throw new SyntaxError(`no length: ${length}`);
  return after.length < Number(length) ? undefined : Number(length);
}

function lengthOfChunks(text: string): number | undefined {
  for (let at = 0; ;) {
    const [line, size = ''] = /^([0-9a-f]+)\r\n/i.exec(text.slice(at, at + 20)) ?? [];
    if (line === undefined) {
      if (text.length - at < 20) return undefined;
      throw new SyntaxError(`no chunk: ${text.slice(at, at + 20)}`);
    }
    at += line.length + parseInt(size, 16) + 2;
    if (at > text.length) return undefined;
    if (/^0+$/.test(size)) return at;
  }
}
