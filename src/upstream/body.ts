// Reads the body of a response as text, but not more of it than allowed.
import { ServiceError } from '../errors.js';

/** @throws ServiceError UPSTREAM_BAD_ANSWER as soon as the body, decompressed, is over the limit */
export async function readBody(response: Response, maxBodyBytes: number): Promise<string> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop by an error cancels the stream, and so closes the connection.
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > maxBodyBytes) throw tooLong(response.status, maxBodyBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString('utf8');
}

export function tooLong(status: number, maxBodyBytes: number): ServiceError {
  const detail = `more than ${maxBodyBytes} bytes (HTTP ${status}); see upstream.maxBodySize`;
  return new ServiceError('UPSTREAM_BAD_ANSWER', { detail, upstreamStatus: status });
}
