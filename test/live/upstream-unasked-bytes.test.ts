// Unsolicited bytes from the Handle server: they close the connection and reach no client.
import '../support/real-sockets.js';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, type Socket, type Server, createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { exchange } from '../../src/upstream/exchange.js';
import { type Certificate, createCertificate } from '../support/certificate.js';
import { jsonReply } from '../support/recording-upstream.js';
import { type Target, openConnections } from './upstream-loopback.js';

let certificate: Certificate;
beforeAll(async () => {
  certificate = await createCertificate();
});

const GOOD = jsonReply('"good"');
const EVIL = jsonReply('"evil"');

interface Talker {
  options: Target;
  /** Server-side sockets in connection order. */
  sockets: Socket[];
}

/** Starts a server that responds to data with each of `answers` in turn, and then with the good response. */
async function startTalker(isTls: boolean, ...answers: string[]): Promise<Talker> {
  const sockets: Socket[] = [];
  const talk = (socket: Socket): void => {
    sockets.push(socket);
    socket.on('error', () => undefined).on('data', () => socket.write(answers.shift() ?? GOOD));
  };
  const server: Server = isTls ? createTlsServer(certificate, talk) : createServer(talk);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}`;
  const { fingerprint } = certificate;
  return { options: { url, connections: 1, ...(isTls && { fingerprint }) }, sockets };
}

/** Sends one request and returns the complete response body. */
type Ask = () => Promise<string>;

interface Way {
  ask: Ask;
  /** Resolves when the idle timeout has closed the connection. */
  idledOut: () => Promise<string>;
}

/** Sends requests as http-proxy does, which forwards writes and other requests. */
function throughAgent(agent: http.Agent, url: string): Way {
  const { request } = url.startsWith('https:') ? https : http;
  return {
    async ask() {
      const sent = request(url, { agent, method: 'PUT' }).end('[]');
      const [answer] = (await once(sent, 'response')) as [http.IncomingMessage];
      let text = '';
      for await (const chunk of answer) text += String(chunk);
      return text;
    },
    async idledOut() {
      const [socket] = Object.values(agent.freeSockets).flat();
      await once(socket!, 'timeout');
      return 'idled out';
    },
  };
}

/** Sends requests as reads, ePIC v2 and the reverse lookup do. */
function throughDispatcher(options: Target): Way {
  const { dispatcher } = openConnections(options);
  const request = { origin: options.url, method: 'PUT' as const, path: '/', headers: [], body: '[]' };
  return {
    ask: async () => {
      return (await exchange(dispatcher, request, { timeoutMs: 60_000, maxBodyBytes: 1000 })).body;
    },
    idledOut: () => new Promise(() => undefined),
  };
}

const write = (options: Target): Way => throughAgent(openConnections(options).writeAgent, options.url);

describe('unsolicited upstream bytes', () => {
  describe.each<[string, boolean, (options: Target) => Way]>([
    ['a write', false, write],
    ['a write over TLS', true, write],
    ['a read', false, throughDispatcher],
    ['a read over TLS', true, throughDispatcher],
  ])('%s', (_way, isTls, waysOf) => {
    test.each([
      ['a complete response', EVIL],
      ['part of a response', EVIL.slice(0, 20)],
      ['an interim response', 'HTTP/1.1 100 Continue\r\n\r\n'],
      ['noise', '\0'],
    ])('close an idle connection (%s)', async (_what, bytes) => {
      const { options, sockets } = await startTalker(isTls);
      const { ask, idledOut } = waysOf(options);
      expect(await ask()).toBe('"good"');
      const closed = once(sockets[0]!, 'close').then(() => 'closed');
      const first = Promise.race([idledOut(), closed]);
      sockets[0]!.write(bytes);
      expect(await first).toBe('closed');
      expect(await ask()).toBe('"good"');
      expect(sockets.length).toBe(2);
    });

    test('are not the response to the next request when they arrive in the same packet', async () => {
      const { options, sockets } = await startTalker(isTls, GOOD + EVIL);
      const { ask } = waysOf(options);
      expect(await ask()).toBe('"good"');
      expect(await ask()).toBe('"good"');
      expect(sockets.length).toBe(2);
    });

    test('are the only bytes that prevent reuse of the connection', async () => {
      const { options, sockets } = await startTalker(isTls);
      const { ask } = waysOf(options);
      for (let time = 0; time < 3; time++) expect(await ask()).toBe('"good"');
      expect(sockets.length).toBe(1);
    });
  });

  test.each([
    ['http', false],
    ['https', true],
  ])(
    'close the connection when a second response arrives over %s before the first is read',
    async (_name, isTls) => {
      const { options, sockets } = await startTalker(isTls);
      const { writeAgent } = openConnections(options);
      const { request } = isTls ? https : http;
      const sent = request(options.url, { agent: writeAgent, method: 'PUT' }).end('[]');
      const [answer] = (await once(sent, 'response')) as [http.IncomingMessage];
      const closed = once(sockets[0]!, 'close');
      sockets[0]!.write(EVIL);
      await closed;
      expect(String(answer.read())).toBe('"good"');
      expect(await throughAgent(writeAgent, options.url).ask()).toBe('"good"');
      expect(sockets.length).toBe(2);
    },
  );
});
