// Routes for native messages over HTTP.
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { defineRoutes } from '../../http/route-table.js';
import type { Target } from '../../http/target.js';

export const MESSAGE_TYPE = 'application/x-hdl-message';

export const namesMessage = (value = ''): boolean => value.toLowerCase().includes(MESSAGE_TYPE);

/**
 * Whether Accept and Content-Type both name the message type, regardless of letter case (recordings "tunnel:
 * no Accept", "tunnel: Content-Type in capitals").
 */
const isTunnelled = ({ headers }: IncomingMessage): boolean =>
  namesMessage(headers.accept) && namesMessage(headers['content-type']);

/** Matches file paths of a Handle server, which accept no messages (recording "tunnel: path /static/x"). */
const FILES = /^\/static\//i;

const message = { [MESSAGE_TYPE]: z.string().meta({ contentMediaType: MESSAGE_TYPE }) };

const sendMessage = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Send a native message',
  description: `A native message requires \`${MESSAGE_TYPE}\` in both \`Content-Type\` and \`Accept\`. It contains its handle; the path is ignored.`,
  body: { description: 'A native message with its envelope', content: message },
  responses: {
    200: { description: 'A native message with its envelope, also for errors', content: message },
  },
  errors: ['BODY_TOO_LARGE'] as const,
  when: (req: IncomingMessage, { path }: Target) => !FILES.test(path) && isTunnelled(req),
});

/** Accepts messages at every path outside the APIs. */
export const nativeRoutes = defineRoutes(
  {
    interface: 'native',
    family: 'native-tunnel',
    tag: { name: 'Native protocol', description: 'The binary Handle protocol, tunnelled over HTTP.' },
    handler: 'tunnel',
    parameters: z.object({ handle: z.string().describe('Any path. The message contains the handle.') }),
  },
  { 'POST /': sendMessage('sendMessage'), 'POST /{handle}': sendMessage('sendMessageAnywhere') },
);
