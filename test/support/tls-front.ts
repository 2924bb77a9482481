// nginx and Caddy as config/examples has them, with the addresses and the certificate of a test.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:net';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { createCertificate } from './certificate.js';
import { freePort } from './redis-server.js';

export type FrontName = 'nginx' | 'caddy';

/** The name that the examples serve. */
export const NAME = 'hdl.example.org';

export interface Front {
  port: number;
  ask: (target: string, question?: FrontQuestion) => Promise<FrontAnswer>;
}
export interface FrontQuestion {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}
export interface FrontAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

interface Place {
  folder: string;
  port: number;
  /** Host and port of each proxy. */
  backends: string[];
}

export const example = (name: string): string =>
  readFileSync(new URL(`../../config/examples/${name}`, import.meta.url), 'utf8');

/** A folder with `cert.pem` and `key.pem`, gone when the test ends. */
export async function folderWithCertificate(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const { key, cert } = await createCertificate();
  writeFileSync(join(folder, 'cert.pem'), cert);
  writeFileSync(join(folder, 'key.pem'), key);
  return folder;
}

/** Only what names a place of the machine is changed. */
export function nginxConfig({ folder, port, backends }: Place): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ');
  return example('nginx.conf')
    .replace('worker_processes auto;', 'worker_processes 1;')
    .replace('http {', `http { ${temporary}`)
    .replaceAll(/^.*listen \[::\].*\n/gm, '')
    .replace('listen 80;', `listen unix:${folder}/plain;`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace(/ssl_certificate .*;/, `ssl_certificate ${folder}/cert.pem;`)
    .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${folder}/key.pem;`)
    .replace('server 127.0.0.1:8080;', backends.map((backend) => `server ${backend};`).join('\n'));
}

export function caddyfile({ folder, port, backends }: Place): string {
  return `{
  admin off
  auto_https off
  storage file_system ${folder}/storage
}
${example('Caddyfile')}`
    .replace('hdl.example.org {', `:${port} {\n\tbind 127.0.0.1\n\ttls ${folder}/cert.pem ${folder}/key.pem`)
    .replace('127.0.0.1:8080', backends.join(' '));
}

export const nginxArguments = (folder: string): string[] => {
  const user = process.getuid?.() === 0 ? ' user root;' : '';
  return ['-p', folder, '-c', 'front.conf', '-e', 'stderr', '-g', `daemon off; pid ${folder}/pid;${user}`];
};

/** Starts the program; ended when the test ends. */
export async function startFront(name: FrontName, ...backends: string[]): Promise<Front> {
  const place = { folder: await folderWithCertificate(), port: await freePort(), backends };
  const config = name === 'nginx' ? nginxConfig(place) : caddyfile(place);
  writeFileSync(join(place.folder, 'front.conf'), config);
  const args =
    name === 'nginx'
      ? nginxArguments(place.folder)
      : ['run', '--adapter', 'caddyfile', '--config', join(place.folder, 'front.conf')];
  const env = { ...process.env, HOME: place.folder };
  const child = spawn(name, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  onTestFinished(() => stop(child));
  while (!(await answers(place.port))) {
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { port: place.port, ask: (target, question) => ask(place.port, target, question) };
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

const agent = new Agent({ keepAlive: false, rejectUnauthorized: false });

function ask(
  port: number,
  target: string,
  { method = 'GET', headers = {}, body }: FrontQuestion = {},
): Promise<FrontAnswer> {
  return new Promise((resolve, reject) => {
    const options = { port, path: target, method, agent, host: '127.0.0.1', servername: '' };
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
