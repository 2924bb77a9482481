// The routes of the OpenAPI document, on each listener.
import { z } from 'zod';
import { anyObject, json } from '../http/schemas.js';
import { type Route, defineRoutes } from '../http/route-table.js';

export const openApiRoutes = (group: Pick<Route, 'interface' | 'tag'>) =>
  defineRoutes(
    { ...group, handler: 'openApi', errors: ['METHOD_REFUSED'] },
    {
      'GET /openapi': {
        id: 'readDescriptionPage',
        summary: 'This document as a page',
        responses: {
          200: { description: 'The page', content: { 'text/html': z.string() } },
          303: 'The call of a form',
          304: 'Not modified',
        },
      },
      'GET /openapi.json': {
        id: 'readDescription',
        summary: 'This document',
        responses: { 200: json('The document', anyObject), 304: 'Not modified' },
      },
    },
  );
