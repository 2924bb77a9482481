// The batch routes, which read many handles in one request.
import { z } from 'zod';
import type { ErrorCode } from '../../errors.js';
import { readParameters } from '../../http/query.js';
import { defineRoutes } from '../../http/route-table.js';
import { PROXY_ERRORS, RECORD_TAG, form, inForm, inRecordForm, selection } from '../routes.js';
import { batch, recordError } from '../schemas.js';
import { MAX_HANDLES, batchBody, isBatch } from './request.js';

const ERRORS: readonly ErrorCode[] = ['BATCH_WITH_LOGIN', 'BAD_PARAMETER', 'BATCH_TOO_LARGE', 'RATE_LIMITED'];
const responses = { 200: inRecordForm('The records, and errors of single handles', batch) };

export const batchRoutes = defineRoutes(
  { interface: 'batch', tag: RECORD_TAG, errorContent: inForm(recordError) },
  {
    'POST /api/resolve/?': {
      id: 'resolveHandles',
      handler: 'batchByBody',
      summary: 'Read many records',
      description:
        'One array in the order of the list, sent while it is made: each element has the handle, and status and body of its GET. Without credentials, and from the cache: neither `auth=true` nor `publicOnly=false`. Each handle counts for the limits of traffic rules.',
      query: z.object(form),
      body: {
        description: `At most ${MAX_HANDLES.POST} handles`,
        content: { 'application/json': batchBody },
        example: { handles: ['21.T11998/page', '21.T11998/demo'], type: ['URL'] },
      },
      responses,
      errors: ['BATCH_BAD_BODY', 'BODY_TOO_LARGE', 'OVERLOADED', ...ERRORS],
    },
    'GET /api/handles/?': {
      id: 'resolveHandlesByQuery',
      handler: 'batchByQuery',
      summary: 'The records of several handles',
      description: `With \`handle\` as \`POST /api/resolve\`, for at most ${MAX_HANDLES.GET} handles and without credentials.`,
      query: z.object({
        handle: z.array(z.string()).describe(`At most ${MAX_HANDLES.GET} handles, instead of a prefix.`),
        ...selection,
        ...form,
      }),
      responses,
      errors: [...PROXY_ERRORS, ...ERRORS],
      when: (_req, { query }) => isBatch(readParameters(query)),
    },
  },
);
