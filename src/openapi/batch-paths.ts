// Many handles in one request.
import { MAX_HANDLES } from '../record/batch/request.js';
import { type Operation, type Paths, failures, list, query, ref, text } from './parts.js';
import { PROXY_CODES, RECORD_TAG, form, inForm, selection } from './record-parts.js';

const batch = inForm(ref('Batch'));
const error = inForm(ref('RecordError'));

const CODES = ['BATCH_ANONYMOUS', 'BAD_PARAMETER', 'BATCH_TOO_LARGE', 'RATE_LIMITED'] as const;

const resolveMany: Operation = {
  operationId: 'resolveHandles',
  tags: [RECORD_TAG],
  summary: 'Read many records',
  description:
    'One array in the order of the list, sent while it is made: each element has the handle, and status and body of its GET. Without credentials, and from the cache: neither `auth=true` nor `publicOnly=false`. Each handle counts for the limits of traffic rules.',
  parameters: [...form],
  requestBody: {
    description: `At most ${MAX_HANDLES.POST} handles`,
    required: true,
    content: {
      'application/json': {
        schema: ref('BatchBody'),
        example: { handles: ['21.T11998/page', '21.T11998/demo'], type: ['URL'] },
      },
    },
  },
  responses: {
    200: { description: 'The records, and errors of single handles', ...batch },
    ...failures(['BATCH_BAD_BODY', 'BODY_TOO_LARGE', 'OVERLOADED', ...CODES], error),
  },
};

export const batchPaths = (): Paths => ({ '/api/resolve': { post: resolveMany } });

/** The list of a prefix and the batch: both are a GET of one path. */
export function withBatch({ parameters = [], responses, ...operation }: Operation): Operation {
  const handles = query('handle', `At most ${MAX_HANDLES.GET} handles, instead of a prefix.`, list(text));
  return {
    ...operation,
    summary: 'The handles of a prefix, or the records of several handles',
    description: `With \`handle\` as \`POST /api/resolve\`, for at most ${MAX_HANDLES.GET} handles and without credentials.`,
    parameters: [
      ...parameters.map((parameter) =>
        parameter.name === 'prefix' ? { ...parameter, required: false } : parameter,
      ),
      handles,
      ...selection,
    ],
    responses: {
      ...responses,
      200: {
        description: 'The list, or the records',
        ...inForm({ anyOf: [ref('HandleList'), ref('Batch')] }),
      },
      ...failures([...PROXY_CODES, ...CODES], error),
    },
  };
}
