// Starts nginx as a URL cache: one worker, one load per key, stale serving, no caching with credentials.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assertInstalled, scratchFolder, start, untilAnswers } from '../children.js';
import { type Peer, peerOf } from './peer.js';
import { freePort } from '../../support/free-port.js';

/** An upstream for requests whose path matches. */
export interface Route {
  /** nginx location pattern. */
  location: string;
  url: string;
}

/** @throws Missing if nginx is not installed */
export function startNginx(
  upstreamUrl: string,
  { redirectsUrl = upstreamUrl, maxBytes }: NginxOptions = {},
): Promise<Peer> {
  const routes = [
    { location: '/api/', url: upstreamUrl },
    { location: '/', url: redirectsUrl },
  ];
  return startRoutingNginx(routes, maxBytes);
}

interface NginxOptions {
  redirectsUrl?: string;
  /** Cache size in bytes. */
  maxBytes?: number;
}

/** @throws Missing if nginx is not installed */
export async function startRoutingNginx(routes: readonly Route[], maxBytes = 1024 ** 3): Promise<Peer> {
  assertInstalled('nginx');
  const folder = scratchFolder();
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, configuration({ folder, port, routes, maxBytes }));
  const command = ['nginx', '-p', folder, '-e', join(folder, 'error.log'), '-c', file];
  const child = start(command, { place: 'server' });
  const url = `http://127.0.0.1:${port}`;
  await untilAnswers(`${url}/`, child);
  return peerOf('nginx', url, child);
}

interface Where {
  folder: string;
  port: number;
  routes: readonly Route[];
  maxBytes: number;
}

/** Runs the workers as root if the bench is root, because other users may be unable to read its folders. */
const user = process.getuid?.() === 0 ? 'user root;' : '';

const pool = ({ url }: Route, at: number): string => `
  upstream handle_server_${at} {
    server ${new URL(url).host};
    keepalive 64;
    keepalive_requests 1000000000;
  }`;

const location = (route: Route, at: number): string => `
    location ${route.location} { proxy_pass http://handle_server_${at}; }`;

const configuration = ({ folder, port, routes, maxBytes }: Where): string => `
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
${user}
pid ${folder}/nginx.pid;
error_log ${folder}/error.log error;
events { worker_connections 8192; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 65s;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/temp;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  proxy_cache_path ${folder}/cache levels=1:2 keys_zone=handles:128m max_size=${maxBytes} inactive=2h use_temp_path=off;
  open_file_cache max=8000 inactive=60s;
  ${routes.map(pool).join('')}
  server {
    listen 127.0.0.1:${port} backlog=4096;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_cache handles;
    proxy_cache_key $request_uri;
    proxy_cache_lock on;
    proxy_cache_use_stale error timeout updating http_500 http_502 http_503 http_504;
    proxy_cache_background_update on;
    proxy_cache_valid 200 302 1h;
    proxy_cache_valid 404 30s;
    proxy_cache_bypass $arg_auth $http_authorization;
    proxy_no_cache $arg_auth $http_authorization;
    location = / { return 200; }
    ${routes.map(location).join('')}
  }
}
`;
