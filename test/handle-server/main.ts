// `npm run demo`: a Handle server in memory and the proxy before it, to try the product.
import { loadConfig } from '../../src/config/load.js';
import { exitOnFailure, stopOnSignal } from '../../src/process/run.js';
import { serve } from '../../src/process/serve.js';
import { nativePort } from './native-port.js';
import { DEMO_PREFIX } from './seed.js';
import { createDemoServer } from './server.js';

await exitOnFailure(async () => {
  const demo = createDemoServer({});
  const { url: upstreamUrl } = await demo.listen(0);
  // On loopback unless HOST says otherwise: everybody knows the password of the demo.
  const host = process.env['HOST'] || '127.0.0.1';
  const config = loadConfig({
    env: {
      LOG_LEVEL: 'error',
      V2_PREFIXES: DEMO_PREFIX,
      NATIVE_TCP_PORT: await nativePort('tcp', host),
      NATIVE_UDP_PORT: await nativePort('udp', host),
      NATIVE_SITE_ADDRESS: '127.0.0.1',
      ...process.env,
      HOST: host,
      UPSTREAM_URL: upstreamUrl,
    },
    readFile: () => '',
  });
  const service = await serve(config);
  stopOnSignal(config, {
    ...service,
    stop: async (timeoutMs) => {
      await service.stop(timeoutMs);
      await demo.close();
    },
  });
  const { url, adminUrl, nativeTcp = 'off', nativeUdp = 'off' } = service;
  process.stdout.write(`A demo Handle server and the proxy before it are running. Try:

  curl -i '${url}/api/handles/21.T11998/demo'
  curl -s '${url}/api/handles/21.t11998/DEMO?type=URL&pretty'
  curl -s '${adminUrl}/metrics' | grep handle_proxy_requests

Native protocol, for Java programs and HDLProxy: ${nativeTcp}, ${nativeUdp}
Press Ctrl-C to stop.
`);
});
