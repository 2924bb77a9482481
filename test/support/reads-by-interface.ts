// One read of a handle through each interface.
import { batchTarget } from './batch.js';
import { askTcp, exchangeUdp } from './native-client.js';
import { nativeRequest } from './native-messages.js';
import type { Proxy } from './proxy.js';

const MESSAGE = 'application/x-hdl-message';

/** Functions that read `handle`, by the name of the interface in figures; `query`: of the record interface. */
export const READS: Readonly<
  Record<string, (proxy: Proxy, handle: string, query?: string) => Promise<unknown>>
> = {
  record: ({ ask }, handle, query = '') => ask(`/api/handles/${handle}${query}`),
  redirect: ({ ask }, handle) => ask(`/${handle}`),
  batch: ({ ask }, handle) => ask(batchTarget([handle])),
  v2: ({ ask }, handle) => ask(`/api/v2/handles/${handle}`),
  'native-tcp': ({ tcpPort }, handle) => askTcp(tcpPort, handle),
  'native-udp': ({ udpPort }, handle) => exchangeUdp(udpPort, [nativeRequest(handle)]),
  'native-tunnel': ({ ask }, handle) =>
    ask('/', {
      method: 'POST',
      body: nativeRequest(handle),
      headers: { Accept: MESSAGE, 'Content-Type': MESSAGE },
    }),
};
