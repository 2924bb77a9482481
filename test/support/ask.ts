// Sends a request byte for byte, without normalising its path.
import { Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface Asked {
  status: number;
  headers: IncomingHttpHeaders;
  /** Names and values as received. */
  rawHeaders: string[];
  body: Buffer;
  text: string;
}

export interface Question {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** By default, each request opens a new connection. */
  agent?: Agent;
}

const newConnection = new Agent({ keepAlive: false });

export function ask(
  baseUrl: string,
  target: string,
  { method = 'GET', headers = {}, body, agent = newConnection }: Question = {},
): Promise<Asked> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path: target, method, headers, agent }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.once('error', reject);
      answer.once('end', () => {
        const whole = Buffer.concat(chunks);
        const { statusCode = 0, headers: got, rawHeaders } = answer;
        resolve({ status: statusCode, headers: got, rawHeaders, body: whole, text: whole.toString('utf8') });
      });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
