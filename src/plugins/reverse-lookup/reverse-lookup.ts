// Relays requests to the reverse lookup service, and asks it for searches.
import type { Host, Started } from '../../app/plugin.js';
import { createForwarder } from '../../record/forward.js';
import { createPassThrough } from '../../record/pass-through.js';
import { createConnections } from '../../upstream/connections.js';
import { sessionsOf } from '../../upstream/sessions.js';
import { createReverseLookup } from './client.js';
import type { ReverseLookupConfig } from './plugin.js';

export function start(host: Host, settings: ReverseLookupConfig): Started {
  const { url = '', forwardLogin } = settings.reverseLookup;
  const { timeoutMs, writeTimeoutMs, maxBodyBytes, connections } = settings.upstream;
  const { pseudonym, runStepsOf, upstreams } = host;
  const { writeAgent, dispatcher, close } = createConnections({ url, connections }, host.createDispatcher);
  const sessions = sessionsOf(url, upstreams.main?.url);
  const forward = createForwarder({ url, readOnly: false, writeAgent, writeTimeoutMs, sessions }, host);
  return {
    handlers: ({ withBody }) => ({
      reverseLookup: createPassThrough({ withBody, forward, maxRecordBytes: maxBodyBytes, runStepsOf }),
    }),
    search: createReverseLookup({ url, forwardLogin, pseudonym, timeoutMs, maxBodyBytes, dispatcher }),
    close,
  };
}
