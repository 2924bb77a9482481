// A trace collector that receives OTLP/HTTP with JSON, and exposes the received spans.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: string };
}
interface WrittenSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  status: { code: number };
}
interface ExportRequest {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: WrittenSpan[] }[] }[];
}

export interface ReceivedSpan extends Omit<WrittenSpan, 'attributes'> {
  attributes: Record<string, string | undefined>;
}

export interface OtlpReceiver {
  endpoint: string;
  requests: ExportRequest[];
  spans: () => ReceivedSpan[];
  /** Holds all responses until the returned function is called. */
  hold: () => () => void;
}

const plain = (attributes: Attribute[]): ReceivedSpan['attributes'] =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

/** Starts a collector that responds with `status`. */
export async function startOtlpReceiver(status = 200): Promise<OtlpReceiver> {
  const requests: ExportRequest[] = [];
  let released = Promise.resolve();
  const server = createServer((req, res) => {
    let body = '';
    req.setEncoding('utf8').on('data', (text: string) => (body += text));
    req.once('end', () => {
      requests.push(JSON.parse(body) as ExportRequest);
      void released.then(() => res.writeHead(status, { 'Content-Type': 'application/json' }).end('{}'));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    requests,
    hold: () => {
      let release = (): void => undefined;
      released = new Promise((resolve) => (release = resolve));
      return release;
    },
    spans: () =>
      requests
        .flatMap(({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans))
        .flatMap(({ spans }) => spans.map((span) => ({ ...span, attributes: plain(span.attributes) }))),
  };
}
