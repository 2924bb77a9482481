// Recorded requests and responses match the OpenAPI document.
import { describe, expect, it } from 'vitest';
import { complaintsAbout, complaintsAboutRequest, operationOf } from '../support/openapi.js';
import { replayThroughProxy } from '../support/recorded-proxy.js';
import { handleServerRecordings } from '../support/recordings.js';

const answerTo = replayThroughProxy();

/** Recorded calls covered by the document. */
const told = handleServerRecordings.filter(
  ({ request }) => request.path.startsWith('/api/') && operationOf(request.method, request.path),
);

/** Whether the body is strict JSON; the lenient JSON of a Handle server cannot be described by a schema. */
function isStrict(sent = ''): boolean {
  try {
    JSON.parse(sent);
    return true;
  } catch {
    return false;
  }
}

describe('recorded calls in the OpenAPI document', () => {
  it('cover more than 250 recordings', () => {
    expect(told.length).toBeGreaterThan(250);
  });

  it.each(told)('match the document: $name', async (recording) => {
    const { method, path, body: sent } = recording.request;
    const answer = await answerTo(recording);
    // Web server pages were recorded without their text.
    if (answer?.body == null) return;
    const isScript = /[?&]callback=/.test(path) && !answer.body.startsWith('{');
    const contentType = isScript ? 'application/javascript' : 'application/json';
    const exchange = { method, target: path, sent, status: answer.status, contentType, body: answer.body };
    expect(complaintsAbout(exchange)).toEqual([]);
    if (answer.status < 300 && isStrict(sent)) expect(complaintsAboutRequest(exchange)).toEqual([]);
  });
});
