// Uses nock to mock the JSON interface of the Handle server behind the recorded messages.
import { type Answer, mockUpstream } from './upstream.js';
import { native } from './native-recordings.js';

/** Returns the handle in a target that the proxy requested. */
function handleIn(target: string): string {
  const path = target.slice('/api/handles/'.length).split('?', 1)[0] ?? '';
  return Buffer.from(decodeURIComponent(path)).toString();
}

function answerTo(target: string): Answer {
  const handle = handleIn(target);
  const [plain, all] = native.records[handle] ?? [[500, `not recorded: ${target}`] as const];
  const [status, body] = (target.includes('publicOnly=false') ? all : undefined) ?? plain;
  return { status, body };
}

export const mockRecordedServer = () => mockUpstream(answerTo);
