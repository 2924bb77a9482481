// Many callers at once, from this process: for what a load generator cannot count.
import { Agent, request } from 'node:http';
import { BASIC } from '../records.js';

export interface Answer {
  status: number;
  text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

export function get(url: string): Promise<Answer> {
  return send(url, 'GET');
}

/** Writes a record with the credentials of the bench. */
export function put(url: string, values: readonly unknown[]): Promise<Answer> {
  return send(url, 'PUT', JSON.stringify(values));
}

function send(url: string, method: string, body?: string): Promise<Answer> {
  const headers = body === undefined ? {} : { Authorization: BASIC, 'Content-Type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      answer.once('error', reject).once('end', () => {
        resolve({ status: answer.statusCode ?? 0, text });
      });
    });
    sent.once('error', reject).end(body);
  });
}
