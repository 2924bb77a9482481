// Sends ePIC v2 requests as its clients do.
import { type Asked, ask } from './ask.js';
import { basic } from './demo.js';

export const USER01 = basic('300:21.T11998/USER01', 'password');
export const USER02 = basic('300:21.T11998/USER02', 'secret2');

export interface V2Question {
  method?: string;
  /** Authorization header; null for none. */
  as?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export type AskV2 = (path: string, question?: V2Question) => Promise<Asked>;

/** Creates a function that sends requests under `/api/v2/handles`, with JSON bodies. */
export function askV2(url: string): AskV2 {
  return (path, { method = 'GET', as = USER01, body, headers = {} } = {}) =>
    ask(url, `/api/v2/handles${path}`, {
      method,
      headers: {
        ...(as !== null && { Authorization: as }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
}

export const urlTo = (place: string): { type: string; parsed_data: string } => ({
  type: 'URL',
  parsed_data: `https://example.org/${place}`,
});

/** Parses the body of a response as JSON. */
export const read = ({ text }: Asked): unknown => JSON.parse(text);

/** Returns index, type and parsed data of each value in a v2 record. */
export const gist = (answer: Asked): [number, string, unknown][] =>
  (read(answer) as { idx: number; type: string; parsed_data: unknown }[]).map((value) => [
    value.idx,
    value.type,
    value.parsed_data,
  ]);
