// `npm run demo`: an in-memory Handle server behind a proxy, for trying the product.
import { accessSync, constants, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../app/config.js';
import { exitOnFailure, stopOnSignal } from '../app/run.js';
import { serve } from '../app/serve.js';
import { portIfFree } from '../dev-server/port-if-free.js';
import { DEMO_PASSWORD, DEMO_PREFIX } from '../dev-server/seed.js';
import { createDemoServer } from '../dev-server/server.js';

const NATIVE_PORT = 2641;

/** The Handle server's port is fixed, because the proxy rejects snapshots from a different upstream. */
const { HANDLE_SERVER_PORT = '21998' } = process.env;
const USER = `300%3A${DEMO_PREFIX}/USER01`;
const VALUES = JSON.stringify([{ index: 1, type: 'URL', data: 'https://example.org/mine' }]);
const SNAPSHOT = fileURLToPath(
  new URL('../node_modules/.cache/handle-resolver-proxy/demo-snapshot', import.meta.url),
);

/** Creates the folder of the file, and returns whether this user may write there. */
function hasPlace(file: string): boolean {
  try {
    mkdirSync(dirname(file), { recursive: true });
    accessSync(dirname(file), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

await exitOnFailure(async () => {
  const demo = createDemoServer({});
  const upstreamPort = await portIfFree('tcp', '127.0.0.1', Number(HANDLE_SERVER_PORT));
  const { url: upstreamUrl } = await demo.listen(Number(upstreamPort));
  const hasSnapshot = upstreamPort !== '0' && hasPlace(SNAPSHOT);
  // The demo listens on loopback unless HOST is set, because its password is public.
  const host = process.env['HOST'] || '127.0.0.1';
  const env: NodeJS.ProcessEnv = {
    LOG_LEVEL: 'error',
    V2_PREFIXES: DEMO_PREFIX,
    NATIVE_TCP_PORT: await portIfFree('tcp', host, NATIVE_PORT),
    NATIVE_UDP_PORT: await portIfFree('udp', host, NATIVE_PORT),
    NATIVE_SITE_ADDRESS: '127.0.0.1',
    ...(hasSnapshot && { CACHE_SNAPSHOT_FILE: SNAPSHOT }),
    ...process.env,
    HOST: host,
    UPSTREAM_URL: upstreamUrl,
  };
  const config = loadConfig({ env, readFile: () => '' });
  const service = await serve(config);
  stopOnSignal(config, { ...service, stop: (timeoutMs) => service.stop(timeoutMs).then(demo.close) });
  const { url, adminUrl, addresses } = service;
  const { nativeTcp = 'off', nativeUdp = 'off' } = addresses;
  process.stdout.write(`A demo Handle server and the proxy in front of it are running. In a browser:

  Record page  ${url}/${DEMO_PREFIX}/DEMO?noredirect
  API          ${url}/openapi
  Status page  ${adminUrl}/

Read a handle, change one (user ${USER}, password ${DEMO_PASSWORD}), and read it:

  curl -is ${url}/api/handles/${DEMO_PREFIX}/DEMO
  curl -s -u '${USER}:${DEMO_PASSWORD}' -X PUT -H 'Content-Type: application/json' -d '${VALUES}' '${url}/api/handles/${DEMO_PREFIX}/page?index=1'
  curl -s ${url}/api/handles/${DEMO_PREFIX}/page

Native protocol, for Java programs and HDLProxy: ${nativeTcp}, ${nativeUdp}
Snapshot of the cache, for the next start: ${env['CACHE_SNAPSHOT_FILE'] || 'off'}
The Handle server is in memory: records that you write are gone after a restart.
Press Ctrl-C to stop.
`);
});
