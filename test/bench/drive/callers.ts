// Sends concurrent requests from this process, for workloads that a load generator cannot measure.
import { Agent, type RequestOptions, request } from 'node:http';
import { BASIC } from '../records.js';

export interface Answer {
  status: number;
  text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

/** Sends a GET; `from` is the caller's address. */
export function get(url: string, from?: string): Promise<Answer> {
  return send(url, { method: 'GET', ...(from !== undefined && { localAddress: from }) });
}

/** Writes a record with the bench's credentials. */
export function put(url: string, values: readonly unknown[]): Promise<Answer> {
  return send(url, { method: 'PUT' }, JSON.stringify(values));
}

function send(url: string, options: RequestOptions, body?: string): Promise<Answer> {
  const headers = body === undefined ? {} : { Authorization: BASIC, 'Content-Type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...options, headers, agent }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      answer.once('error', reject).once('end', () => {
        resolve({ status: answer.statusCode ?? 0, text });
      });
    });
    sent.once('error', reject).end(body);
  });
}
