// Recorded responses that the demo server does not reproduce: its own response, and the reason.
import type { Answer } from '../support/recordings.js';

interface Waiver {
  answer: Answer;
  reason: string;
}

const RAW_BYTES: Waiver = {
  answer: {
    status: 400,
    headers: ['content-length: 54', 'content-type: text/html;charset=iso-8859-1'],
    body: '<h1>Bad Message 400</h1><pre>reason: Bad Request</pre>',
  },
  reason: 'node:http refuses request targets with bytes beyond ASCII, Jetty reads them wrongly',
};

export const waivers: Readonly<Record<string, Waiver>> = {
  'create: suffix with raw UTF-8 bytes': RAW_BYTES,
  'resolve: raw UTF-8 in request line': RAW_BYTES,
};
