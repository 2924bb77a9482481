// The batch routes, which read many handles in one request.
import { z } from 'zod';
import type { ErrorCode } from '../../errors.js';
import { readParameters } from '../../http/query.js';
import { defineRoutes } from '../../http/route-table.js';
import { PROXY_ERRORS, RECORD_TAG, form, inForm, inRecordForm, selection } from '../../record/routes.js';
import { batch, recordError } from '../../http/record-schemas.js';
import { MAX_HANDLES, batchBody, isBatch } from './request.js';

const ERRORS: readonly ErrorCode[] = ['BATCH_WITH_LOGIN', 'BAD_PARAMETER', 'BATCH_TOO_LARGE', 'RATE_LIMITED'];
const responses = {
  200: inRecordForm(
    'An element for each handle, in the order of the request, with its record or error',
    batch,
  ),
};

export const batchRoutes = defineRoutes(
  { interface: 'batch', tag: RECORD_TAG, errorContent: inForm(recordError) },
  {
    'POST /api/resolve/?': {
      id: 'resolveHandles',
      handler: 'batchByBody',
      summary: `Read up to ${MAX_HANDLES.POST} records`,
      description:
        'Streams an array with one element for each handle, in the order of the request: the handle, and the status and body of its GET. Accepts no credentials, and neither `auth=true` nor `publicOnly=false`, because batches are served from the cache. Each handle counts towards the limits of traffic rules.',
      query: z.object(form),
      body: {
        description: `The handles, at most ${MAX_HANDLES.POST}, and a selection of their values`,
        content: { 'application/json': batchBody },
        example: { handles: ['21.T11998/page', '21.T11998/demo'], type: ['URL'] },
      },
      responses,
      errors: ['BATCH_BAD_BODY', 'BODY_TOO_LARGE', 'OVERLOADED', ...ERRORS],
    },
    'GET /api/handles/?': {
      id: 'resolveHandlesByQuery',
      handler: 'batchByQuery',
      summary: 'Read several records',
      description: `With \`handle\`, responds like \`POST /api/resolve\`, for at most ${MAX_HANDLES.GET} handles and without credentials.`,
      query: z.object({
        handle: z
          .array(z.string())
          .describe(
            `A handle to read, instead of \`prefix\`; may be repeated, up to ${MAX_HANDLES.GET} times.`,
          ),
        ...selection,
        ...form,
      }),
      responses,
      errors: [...PROXY_ERRORS, ...ERRORS],
      when: (_req, { query }) => isBatch(readParameters(query)),
    },
  },
);
