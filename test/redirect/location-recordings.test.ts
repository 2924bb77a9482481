// The proxy with the demo server selects the locations that HDLProxy selected with a real Handle server.
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { ControlledServer } from '../support/demo-control.js';
import { locationWaivers } from '../support/location-waivers.js';
import {
  OF_RECORDS,
  isOfApi,
  isSetup,
  locationRecordings as recordings,
  putRecorded,
  startLocationWorld,
} from '../support/location-world.js';
import { readDocument } from '../support/markdown.js';
import type { Proxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';
import { type Answer, type Recording, recordedAnswer, replay } from '../support/recordings.js';
import { oneIn, thorough } from '../support/thorough.js';

/** Sends an HTTP/1.0 request without headers, which Node's client cannot, and reads until the connection closes. */
async function replayOld({ request }: Recording, { baseUrl }: { baseUrl: string }): Promise<Answer> {
  const socket = await openSocket(baseUrl);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.write(`${request.method} ${request.path} HTTP/1.0\r\n\r\n`);
  await once(socket, 'close');
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()));
  return { status: Number(statusLine.split(' ')[1]), headers, body };
}

interface Chosen {
  /** Status and Location. */
  led: string;
  /** Link and other headers from the record. */
  headers: string[];
  /** Attributes of each location shown by `action=showurls`. */
  shown: string[][] | undefined;
}

function chosenIn({ status, headers, body }: Answer, { request }: Recording): Chosen {
  const location = headers.find((line) => line.startsWith('location: '))?.slice('location: '.length) ?? '';
  const whole = location === '' ? '' : new URL(location, 'http://127.0.0.1:8080').href;
  const isShown = request.path.includes('action=showurls') && status === 200 && request.method !== 'HEAD';
  return {
    led: `${status} ${whole}`.trim(),
    headers: headers
      .filter((line) => OF_RECORDS.test(line))
      .flatMap(separateValues)
      .sort(),
    shown: isShown ? attributesIn(body ?? '') : undefined,
  };
}

/** Splits a line: HDLProxy sends a line for each value, and this proxy one for each name (RFC 9110 §5.3). */
const separateValues = (line: string): string[] => {
  const [name = '', ...values] = line.split(/(?<=^[\w-]+: )|, (?=<)/);
  return values.map((value) => name + value);
};

const attributesIn = (xml: string): string[][] =>
  (xml.match(/<location [^>]*>/g) ?? []).map((element) =>
    (element.match(/[\w-]+="[^"]*"/g) ?? []).map(withoutReferences).sort(),
  );

const withoutReferences = (text: string): string =>
  text
    .replace(/&#(\d+);/g, (_whole, code) => String.fromCharCode(Number(code)))
    .replace(/&(?:amp|quot);/g, (name) => (name === '&amp;' ? '&' : '"'));

/** Recordings before which HDLProxy dropped its cached prefix record, with HS_NAMESPACE kept or removed. */
const FORGOTTEN_BEFORE: Readonly<Record<string, 'kept' | 'removed'>> = {
  'prefix 21.T11998: with HS_NAMESPACE, browser': 'kept',
  'alias: beside a 10320/loc': 'removed',
};

async function forgetPrefix(proxy: Proxy, demo: ControlledServer, change: 'kept' | 'removed'): Promise<void> {
  if (change === 'removed') demo.put('0.NA/21.T11998', []);
  await proxy.app.operations.purge({ handles: ['0.NA/21.T11998'], isSoft: false });
}

/** Maximum number of draws until a random choice matches the recording. */
const MAX_DRAWS = 1000;

async function chosenBy(proxy: Proxy, recording: Recording): Promise<Chosen> {
  const { led } = chosenIn(recordedAnswer(recording), recording);
  const draws = recording.name in locationWaivers ? 1 : MAX_DRAWS;
  for (let draw = 1; ; draw++) {
    const send = recording.name.includes('HTTP/1.0') ? replayOld : replay;
    const chosen = chosenIn(await send(recording, { baseUrl: proxy.url }), recording);
    if (chosen.led === led || draw >= draws) return chosen;
  }
}

const RESOLVED = recordings.filter((recording) => !isSetup(recording) && !isOfApi(recording));
const replayed = new Set(oneIn(4, RESOLVED));

async function replayAll(): Promise<Map<string, Chosen>> {
  const { demo, proxy } = await startLocationWorld();
  const answers = new Map<string, Chosen>();
  for (const recording of recordings) {
    const change = FORGOTTEN_BEFORE[recording.name];
    if (change !== undefined) await forgetPrefix(proxy, demo, change);
    if (isSetup(recording)) putRecorded(demo, recording);
    else if (replayed.has(recording)) answers.set(recording.name, await chosenBy(proxy, recording));
  }
  return answers;
}

const recorded = new Map(
  recordings.map((recording) => [recording.name, chosenIn(recordedAnswer(recording), recording)]),
);

describe('recorded HDLProxy location choices', () => {
  test('are reproduced, except for the waivers', async () => {
    const answers = await replayAll();
    const isWaived = (name: string): boolean => name in locationWaivers;
    const compared = [...answers.keys()].filter((name) => !isWaived(name));
    expect(compared.length).toBeGreaterThan(thorough(290, 60));
    expect(Object.fromEntries(compared.map((name) => [name, answers.get(name)]))).toEqual(
      Object.fromEntries(compared.map((name) => [name, recorded.get(name)])),
    );
    for (const name of [...answers.keys()].filter(isWaived)) {
      expect(answers.get(name), `${name} no longer needs its waiver`).not.toEqual(recorded.get(name));
      expect(answers.get(name)?.led, name).not.toMatch(/^5/);
    }
  });

  test('include a recording for every waiver', () => {
    expect([...recorded.keys()]).toEqual(expect.arrayContaining(Object.keys(locationWaivers)));
  });

  test('have all their waivers listed in the README', () => {
    const readme = readDocument('src/plugins/locations/README.md');
    const shown = Object.keys(locationWaivers).map((name) =>
      name.replace(/^configured \([^)]*\)/, 'configured'),
    );
    expect(shown.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  });
});
