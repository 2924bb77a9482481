// Endpoints besides /api/handles return the recorded responses through the proxy.
import { describe, expect, onTestFinished, test } from 'vitest';
import { endpointWaivers } from '../support/endpoint-waivers.js';
import { isOfApi, locationRecordings } from '../support/location-world.js';
import { readDocument } from '../support/markdown.js';
import { startProxy } from '../support/proxy.js';
import '../support/real-sockets.js';
import { type Answer, type Recording, recordedAnswer, replay } from '../support/recordings.js';
import { startRecordingUpstream } from '../support/recording-upstream.js';

const recordings = locationRecordings.filter(isOfApi);

/** Formats the recorded response as HTTP/1.1 bytes. */
function responseOf({ request, response: { status, headers, body } }: Recording): string {
  const text = request.method === 'HEAD' ? '' : (body ?? '');
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${status} Recorded\r\n${lines}\r\n${text}`;
}

interface Compared {
  status: number;
  body: string | null;
  challenges: string[];
}

const compared = ({ status, headers, body }: Answer): Compared => ({
  status,
  body,
  challenges: headers.filter((line) => line.startsWith('www-authenticate: ')),
});

/** Replays the recorded request through the proxy against a server that sends the recorded response. */
async function replayOne(recording: Recording): Promise<{ answer: Compared; sent: string[] }> {
  const upstream = await startRecordingUpstream(() => responseOf(recording));
  onTestFinished(upstream.close);
  const proxy = await startProxy({ UPSTREAM_URL: upstream.url });
  const answer = compared(await replay(recording, { baseUrl: proxy.url }));
  const sent = upstream.requests.map(({ method, target, headers }) =>
    [method, target, ...(headers['authorization'] ?? [])].join(' '),
  );
  return { answer, sent };
}

describe('recorded endpoints of a Handle server', () => {
  test.each(recordings.map((recording) => [recording.name, recording] as const))(
    'are reproduced, or covered by a waiver: %s',
    async (name, recording) => {
      const { method, path, headers } = recording.request;
      const { answer, sent } = await replayOne(recording);
      const recorded = compared(recordedAnswer(recording));
      if (name in endpointWaivers) {
        expect(answer, 'no longer needs its waiver').not.toEqual(recorded);
        expect(answer.status).toBe(405);
      } else expect(answer).toEqual(recorded);
      // The proxy answers the request itself or relays it unchanged.
      const login = headers.find(([header]) => header === 'Authorization')?.[1];
      const asked = [method, path, ...(login === undefined ? [] : [login])].join(' ');
      expect([[], [asked]]).toContainEqual(sent);
    },
  );

  test('are covered by 31 recordings, including one for every waiver', () => {
    expect(recordings).toHaveLength(31);
    expect(recordings.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(endpointWaivers)));
  });

  test('have all their waivers listed in the README', () => {
    const readme = readDocument('src/plugins/locations/README.md');
    expect(Object.keys(endpointWaivers).filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  });
});
