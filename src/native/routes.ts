// The routes of native messages over HTTP.
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { type RouteTable, defineRoutes } from '../http/route-table.js';
import type { Target } from '../http/target.js';
import { MESSAGE_TYPE, isTunnelled } from './tunnel.js';

/** Files of a Handle server (recording "tunnel: path /static/x"). */
const FILES = /^\/static\//i;

const message = { [MESSAGE_TYPE]: z.string().meta({ contentMediaType: MESSAGE_TYPE }) };

const sendMessage = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Send a native message',
  description: `It needs \`${MESSAGE_TYPE}\` in \`Content-Type\` and \`Accept\`, and names its handle itself.`,
  body: { description: 'A message with its envelope', content: message },
  responses: { 200: { description: 'A message with its envelope, for errors too', content: message } },
  errors: ['BODY_TOO_LARGE'] as const,
  when: (req: IncomingMessage, { path }: Target) => !FILES.test(path) && isTunnelled(req),
});

/** A message is answered at every path outside the APIs. */
export const nativeRoutes = defineRoutes(
  {
    interface: 'native',
    tag: { name: 'Native protocol', description: 'The Handle protocol over HTTP.' },
    handler: 'tunnel',
    parameters: z.object({ handle: z.string().describe('Any path.') }),
  },
  { 'POST /': sendMessage('sendMessage'), 'POST /{handle}': sendMessage('sendMessageAnywhere') },
);

/** Whether a message may come to a path. */
export const takesMessages = (table: RouteTable, path: string): boolean =>
  !FILES.test(path) && (table.at(path)?.routes.some((route) => route.interface === 'native') ?? false);
