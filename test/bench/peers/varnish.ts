// Starts Varnish as a URL cache on one core, which passes requests with credentials or auth=true.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assertInstalled, scratchFolder, start, untilAnswers } from '../children.js';
import { type Peer, peerOf } from './peer.js';
import { freePort } from '../../support/free-port.js';

/** Uses one small pool, because the default, two pools of a hundred threads, is too much for one core. */
const THREADS = ['-p', 'thread_pools=1', '-p', 'thread_pool_min=20'];

/** @throws Missing if varnishd is not installed */
export async function startVarnish(upstreamUrl: string, redirectsUrl = upstreamUrl): Promise<Peer> {
  assertInstalled('varnishd');
  const folder = scratchFolder();
  const port = await freePort();
  const file = join(folder, 'handles.vcl');
  writeFileSync(file, rules(new URL(upstreamUrl).port, new URL(redirectsUrl).port));
  const address = `127.0.0.1:${port}`;
  const storage = ['-s', 'malloc,1G'];
  const where = ['-n', join(folder, 'work'), '-f', file, '-a', address];
  const child = start(['varnishd', '-F', ...where, ...storage, ...THREADS], { place: 'server' });
  const url = `http://${address}`;
  await untilAnswers(`${url}/`, child);
  return peerOf('Varnish', url, child);
}

const rules = (upstreamPort: string, redirectsPort: string): string => `vcl 4.1;
backend handle_server { .host = "127.0.0.1"; .port = "${upstreamPort}"; }
backend redirecting { .host = "127.0.0.1"; .port = "${redirectsPort}"; }
sub vcl_recv {
  if (req.url !~ "^/api/") { set req.backend_hint = redirecting; }
  if (req.url == "/") { return (synth(200)); }
  if (req.http.Authorization || req.url ~ "[?&]auth=") { return (pass); }
}
sub vcl_backend_response {
  if (beresp.status == 200 || beresp.status == 302) { set beresp.ttl = 1h; set beresp.grace = 24h; }
  else if (beresp.status == 404) { set beresp.ttl = 30s; }
}
`;
