// Every recorded call that the document covers matches it, request and response.
import { describe, expect, it } from 'vitest';
import { complaintsAbout, complaintsAboutRequest, operationOf } from '../support/openapi.js';
import { replayThroughProxy } from '../support/recorded-proxy.js';
import { handleServerRecordings } from '../support/recordings.js';

const answers = replayThroughProxy();

/** Recorded calls that the document covers. */
const told = handleServerRecordings.filter(
  ({ request }) => request.path.startsWith('/api/') && operationOf(request.method, request.path),
);

/** A Handle server also accepts lenient JSON, which no schema can describe. */
function isStrict(sent = ''): boolean {
  try {
    JSON.parse(sent);
    return true;
  } catch {
    return false;
  }
}

describe('the recorded calls in the OpenAPI document', () => {
  it('are mostly covered', () => {
    expect(told.length).toBeGreaterThan(250);
  });

  it.each(told)('are answered as documented: $name', ({ name, request: { method, path, body: sent } }) => {
    const answer = answers.get(name);
    // Pages of the web server were recorded without their text.
    if (answer?.body == null) return;
    const isScript = /[?&]callback=/.test(path) && !answer.body.startsWith('{');
    const contentType = isScript ? 'application/javascript' : 'application/json';
    const exchange = { method, target: path, sent, status: answer.status, contentType, body: answer.body };
    expect(complaintsAbout(exchange)).toEqual([]);
    if (answer.status < 300 && isStrict(sent)) expect(complaintsAboutRequest(exchange)).toEqual([]);
  });
});
