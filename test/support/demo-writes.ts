// Sends numbered writes to the demo server, and reads the number from a record.
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { type Asked, ask } from './ask.js';
import { basic } from './demo.js';

export const WRITE_HEADERS = {
  Authorization: basic('300:21.T11998/USER01', 'password'),
  'Content-Type': 'application/json',
};

/** Returns a record that contains its write's number. */
export const numbered = (count: number): unknown[] => [
  textValue(1, 'URL', `https://example.org/${count}`),
  adminValue(),
];

export const numberedBody = (count: number): string => JSON.stringify(numbered(count));

/** Writes a numbered record through a server or proxy. */
export const putNumbered = (baseUrl: string, path: string, count: number): Promise<Asked> =>
  ask(baseUrl, path, { method: 'PUT', headers: WRITE_HEADERS, body: numberedBody(count) });

/** Returns the write number in a response, or 0 if there is none. */
export const numberIn = ({ text }: Pick<Asked, 'text'>): number =>
  Number(/https:\/\/example\.org\/(\d+)/.exec(text)?.[1] ?? 0);
