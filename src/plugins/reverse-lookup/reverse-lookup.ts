// Forwards requests to the reverse lookup service, and asks it for searches.
import type { Host, Started } from '../../app/plugin.js';
import { createForward } from '../../record/forward.js';
import { createForwardRequest } from '../../record/forward-request.js';
import { createConnections } from '../../upstream/connections.js';
import { sessionsOf } from '../../upstream/sessions.js';
import { createReverseLookup } from './client.js';
import type { ReverseLookupConfig } from './plugin.js';

export function start(host: Host, settings: ReverseLookupConfig): Started {
  const { url = '', forwardLogin } = settings.reverseLookup;
  const { timeoutMs, writeTimeoutMs, maxBodyBytes, connections } = settings.upstream;
  const { pseudonym, upstreams } = host;
  const { writeAgent, dispatcher, close } = createConnections({ url, connections }, host.createDispatcher);
  const sessions = sessionsOf(url, upstreams.main?.url);
  const forwardRequest = createForwardRequest(
    { url, readOnly: false, writeAgent, writeTimeoutMs, sessions },
    host,
  );
  return {
    handlers: ({ withBody }) => ({
      reverseLookup: createForward(host, withBody, forwardRequest),
    }),
    search: createReverseLookup({ url, forwardLogin, pseudonym, timeoutMs, maxBodyBytes, dispatcher }),
    close,
  };
}
