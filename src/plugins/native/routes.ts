// Routes for native messages over HTTP.
import type { IncomingMessage } from 'node:http';
import { defineRoutes } from '../../http/route-table.js';
import type { Target } from '../../http/target.js';

export const MESSAGE_TYPE = 'application/x-hdl-message';

const namesMessage = (value = ''): boolean => value.toLowerCase().includes(MESSAGE_TYPE);

/**
 * Whether Accept and Content-Type both name the message type, regardless of letter case (recordings "tunnel:
 * no Accept", "tunnel: Content-Type in capitals").
 */
const isTunnelled = ({ headers }: IncomingMessage): boolean =>
  namesMessage(headers.accept) && namesMessage(headers['content-type']);

/** Matches file paths of a Handle server, which accept no messages (recording "tunnel: path /static/x"). */
const FILES = /^\/static\//i;

const when = (req: IncomingMessage, { path }: Target): boolean => !FILES.test(path) && isTunnelled(req);

/** Accepts messages at every path outside the APIs. */
export const nativeRoutes = defineRoutes(
  { interface: 'native', family: 'native-tunnel', handler: 'tunnel' },
  { 'POST /': { id: 'sendMessage', when }, 'POST /{handle}': { id: 'sendMessageAnywhere', when } },
);
