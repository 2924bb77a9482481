// The routes of the reverse lookup service.
import { z } from 'zod';
import { type ResponseDescription, defineRoutes } from '../../http/route-table.js';
import { recordError } from '../../http/record-schemas.js';
import { json, optionalText, pathText } from '../../http/schemas.js';
import { RELAYED, RELAY_ERRORS } from '../../record/relayed-routes.js';

const page = z.string();
const found: ResponseDescription = json('The matching handles', z.array(z.string()));
const pattern = optionalText('Pattern for values of the type URL; `*` matches any text.');

export const reverseLookupRoutes = defineRoutes(
  {
    interface: 'record',
    tag: {
      name: 'Reverse lookup',
      description: 'Finds handles by their values. Requests are relayed to the reverse lookup service.',
    },
    handler: 'reverseLookup',
    parameters: z.object({
      prefix: pathText('The prefix.', '21.T11998'),
      path: pathText('Path of the service, below `/hrls/`.', 'ping'),
    }),
    errors: RELAY_ERRORS,
    errorContent: { 'application/json': recordError },
    responses: {
      401: { description: 'Credentials missing or wrong', content: { 'text/html': page } },
      default: RELAYED,
    },
    security: ['basic'],
  },
  {
    'GET /hrls/handles/?': {
      id: 'lookUpHandles',
      summary: 'Find handles by their values',
      description: 'Except for `limit` and `page`, a parameter is a type with a pattern for its values.',
      query: z.object({ URL: pattern }),
      responses: { 200: found },
    },
    'GET /hrls/handles/{prefix}': {
      id: 'lookUpHandlesOfPrefix',
      summary: 'Find handles of a prefix by their values',
      query: z.object({ URL: pattern }),
      responses: { 200: found },
    },
    'GET /hrls/ping': {
      id: 'pingLookup',
      summary: 'Check whether the reverse lookup service is running',
      responses: { 200: { description: 'The service is running', content: { 'text/plain': page } } },
      security: ['none', 'basic'],
    },
    'GET /hrls/{path?}': {
      id: 'relayToLookup',
      summary: 'Send any other request to the service',
      responses: {},
      security: ['none', 'basic'],
    },
  },
);
