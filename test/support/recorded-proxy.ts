// Replays Handle server recordings through a proxy in front of a demo server in the recorded state.
import { afterAll, beforeAll, expect } from 'vitest';
import { type ControlledServer, createControlledServer } from './demo-control.js';
import { waivers } from './proxy-waivers.js';
import { createRecordedWorld } from './recorded-world.js';
import { type Answer, type Recording, handleServerRecordings, recordedAnswer, replay } from './recordings.js';
import { serve, type Service } from '../../src/app/serve.js';
import { loadConfig } from '../../src/app/config.js';

/** The compared parts of a response. Headers differ, because they are the proxy's. */
interface Compared {
  status: number;
  body: string | null;
}

const isWrite = ({ request }: Recording): boolean => ['PUT', 'DELETE', 'POST'].includes(request.method);

export const recordedWrites = handleServerRecordings.filter(isWrite);
export const recordedReads = handleServerRecordings.filter((recording) => !isWrite(recording));

/**
 * Whether the request arrived securely; two recordings used an http port that the operator had marked as
 * secure.
 */
const cameSecurely = ({ secure, name }: Recording): boolean => secure || name.includes('secure-marked');

/**
 * Returns a function that answers with the response to a recording. It replays all recordings before it, because they depend on
 * each other; in a test for each, that is one at a time.
 */
export function replayThroughProxy(): (recording: Recording) => Promise<Compared | undefined> {
  const answers = new Map<string, Compared>();
  const left = handleServerRecordings.values();
  const world = createRecordedWorld();
  let demo: ControlledServer;
  let proxies: Service[] = [];
  beforeAll(async () => {
    demo = createControlledServer(world.options);
    const doors = [await demo.listen(0), await demo.listenInsecurely(0)];
    proxies = await Promise.all(doors.map(({ url }) => startBefore(url)));
  });
  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await demo.close();
  });
  return async function answerTo({ name }) {
    while (!answers.has(name)) {
      const { value: next } = left.next();
      if (next === undefined) break;
      const [secure, plain] = proxies as [Service, Service];
      const baseUrl = (cameSecurely(next) ? secure : plain).url;
      answers.set(next.name, compared(await replay(world.turnTo(next), { baseUrl }), next));
    }
    return answers.get(name);
  };
}

function startBefore(url: string): Promise<Service> {
  const env = {
    UPSTREAM_URL: url,
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'silent',
    DELETION_HANDLES: 'true',
    DELETION_VALUES: 'true',
  };
  return serve(loadConfig({ env, readFile: () => '' }));
}

const compared = ({ status, body }: Answer, { response }: Recording): Compared => ({
  status,
  body: response.html === true ? null : body,
});

/** Compares a response with its recording or its waiver, and fails if the waiver is no longer needed. */
export function expectRecorded(recording: Recording, answer: Compared | undefined): void {
  const recorded = compared(recordedAnswer(recording), recording);
  const waiver = waivers[recording.name];
  if (waiver === undefined) {
    expect(answer).toEqual(recorded);
    return;
  }
  const { status, says } = waiver;
  expect(answer).toEqual({ status, body: says === null ? null : (expect.stringContaining(says) as string) });
  expect(answer, 'no longer needs its waiver').not.toEqual(recorded);
}
