// Starts a web server with its configuration from config/examples in front of proxies, and sends requests
// through it.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:net';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { createCertificate } from './certificate.js';
import { FRONTS, type FrontName, NAME, type Place } from './front-configs.js';
import { freePort } from './free-port.js';

export interface Front {
  port: number;
  /** Port for plain http, which Caddy opens only for certificates that it manages. */
  plainPort: number;
  ask: (target: string, question?: FrontQuestion) => Promise<FrontAnswer>;
}
export interface FrontQuestion {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Whether to keep the connection for the next request. */
  keepAlive?: boolean;
}
export interface FrontAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Creates a folder with `cert.pem`, `key.pem` and `both.pem`, and removes it when the test ends. */
export async function folderWithCertificate(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const { key, cert } = await createCertificate();
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
  writeFileSync(join(folder, 'both.pem'), `${cert}\n${key}`);
  return folder;
}

/** Starts the program in front of the backends (host:port), and stops it when the test ends. */
export const startFront = (name: FrontName, ...backends: string[]): Promise<Front> =>
  start(name, { backends });

export interface InstancePlace {
  /** Defaults to 127.0.0.1. */
  host?: string;
  port: number;
  adminPort: number;
}

/**
 * Starts a program in front of the proxies, with health checks on their admin listeners if it supports them.
 */
export const startBalancer = (name: FrontName, places: readonly InstancePlace[]): Promise<Front> =>
  start(name, {
    backends: places.map(({ host = '127.0.0.1', port }) => `${host}:${port}`),
    adminPorts: places.map(({ adminPort }) => adminPort),
  });

async function start(name: FrontName, before: Pick<Place, 'backends' | 'adminPorts'>): Promise<Front> {
  const [port, plainPort] = [await freePort(), await freePort()];
  const place = { folder: await folderWithCertificate(), port, plainPort, ...before };
  const { config, args } = FRONTS[name];
  writeFileSync(join(place.folder, 'front.conf'), config(place));
  const env = { ...process.env, HOME: place.folder };
  const child = spawn(name, args(place.folder), { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  onTestFinished(() => stop(child));
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { port, plainPort, ask: (target, question) => ask(port, target, question) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

const newConnection = new Agent({ keepAlive: false, rejectUnauthorized: false });
const keptConnection = new Agent({ keepAlive: true, rejectUnauthorized: false });

function ask(
  port: number,
  target: string,
  { method = 'GET', headers = {}, body, keepAlive = false }: FrontQuestion = {},
): Promise<FrontAnswer> {
  const agent = keepAlive ? keptConnection : newConnection;
  return new Promise((resolve, reject) => {
    // Node reads at most 16 KiB of headers by default, less than curl and browsers.
    const reading = { agent, maxHeaderSize: 64 * 1024 };
    const options = { port, path: target, method, host: '127.0.0.1', servername: '', ...reading };
    const sent = request({ ...options, headers: { Host: NAME, ...headers } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.once('error', reject);
      answer.once('end', () => {
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
      });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
