// Recreates the recorded server: its records, clock and random numbers.
import { generateKeyPairSync, sign } from 'node:crypto';
import { adminValue, textValue, userRecord } from '../../src/dev-server/seed.js';
import type { ControlledOptions } from './demo-control.js';
import type { SiteJson } from '../../src/handle/value-data.js';
import { type Recording, handleServerRecordings } from './recordings.js';

/** The first recording of each second, derived from timestamps in later responses. */
const CLOCK: [fromRecording: string, time: string][] = [
  ['create: {values} with URL+HS_ADMIN', '2026-11-21T09:29:42Z'],
  ['create: suffix with raw UTF-8 bytes', '2026-11-21T09:29:43Z'],
  ['replace: whole record', '2026-11-21T09:29:46Z'],
  ['order: create with unsorted indexes', '2026-11-21T09:29:48Z'],
  ['timestamps: replace with one changed value', '2026-11-21T09:29:50Z'],
  ['in-server HDLProxy: redirect', '2026-11-21T09:29:51Z'],
  ['extra: create ro-a, value 1 without admin write', '2026-11-21T09:33:43Z'],
];

interface Session {
  sessionId: string;
  nonce: string;
}

export interface RecordedWorld {
  options: ControlledOptions;
  /** Sets the clock and random numbers as in a recording, and replaces a signature whose key is lost. */
  turnTo: (recording: Recording) => Recording;
}

/** Creates the options for a demo server that reproduces the recorded responses. */
export function createRecordedWorld(recordings = handleServerRecordings): RecordedWorld {
  const user04 = generateKeyPairSync('rsa', { modulusLength: 2048 });
  let time = Date.parse('2026-11-21T09:29:39Z');
  let current: Recording | undefined;

  const options: ControlledOptions = {
    now: () => time,
    random: {
      session: () => sessionIn(current!) ?? { sessionId: 'not-recorded', nonce: '' },
      suffix: () => /[0-9a-f-]{36}(?="})/.exec(current?.response.body ?? '')?.[0] ?? 'not-minted',
    },
    prefixes: ['0.NA', '21.T11998', '21.T99999'],
    site: find('site: GET /api/site', recordings).site as SiteJson,
    seed: {
      '0.NA/21.T11998': find('resolve: prefix only', recordings).values as unknown[],
      '0.NA/21.T99999': [],
      // Only server administrators can read its values.
      '0.SITE/status': [{ ...textValue(1, 'STATUS', 'running'), permissions: '1100' }],
      '21.T11998/USER01': userRecord('password'),
      '21.T11998/USER02': userRecord('secret2'),
      '21.T11998/USER03': userRecord('päss:wörd %41'),
      '21.T11998/USER04': [
        adminValue(),
        {
          index: 301,
          type: 'HS_PUBKEY',
          data: { format: 'key', value: user04.publicKey.export({ format: 'jwk' }) },
        },
      ],
      '21.T11998/SERVERADMIN': userRecord('serveradmin'),
      // Recorded lists name these handles, but their requests are waived or missing.
      '21.T11998/BIG64K': [],
      '21.T11998/MANY': [],
      '21.T11998/\ufffdraw': [],
    },
  };

  const turnTo = (recording: Recording): Recording => {
    const change = CLOCK.find(([name]) => name === recording.name);
    if (change) time = Date.parse(change[1]);
    current = recording;
    return resigned(recording, (signed) => sign('sha256', signed, user04.privateKey), recordings);
  };

  return { options, turnTo };
}

function find(name: string, recordings: Recording[]): Record<string, unknown> {
  const body = recordings.find((recording) => recording.name === name)?.response.body;
  return JSON.parse(body!) as Record<string, unknown>;
}

/** Returns the session that the recorded response opened or named. */
function sessionIn({ response }: Recording): Session | undefined {
  const text = [response.body ?? '', ...response.headers.map(([, value]) => value)].join('\n');
  const [, sessionId, nonce] = /sessionId"?[=:]"([^"]+)",\s*"?nonce"?[=:]"([^"]+)"/.exec(text) ?? [];
  return sessionId === undefined ? undefined : { sessionId, nonce: nonce! };
}

/** Replaces the signature of USER04, whose private key was not recorded. */
function resigned(
  recording: Recording,
  signWith: (signed: Buffer) => Buffer,
  recordings: Recording[],
): Recording {
  const [name, header = ''] =
    recording.request.headers.find(([, value]) => value.includes('HS_PUBKEY')) ?? [];
  if (name === undefined) return recording;
  const parameter = (key: string): string => new RegExp(`${key}="([^"]*)"`).exec(header)![1]!;
  const session = recordings
    .map(sessionIn)
    .find((candidate) => candidate?.sessionId === parameter('sessionId'));
  const signed = Buffer.concat([
    Buffer.from(session!.nonce, 'base64'),
    Buffer.from(parameter('cnonce'), 'base64'),
  ]);
  const value = header.replace(/signature="[^"]*"/, `signature="${signWith(signed).toString('base64')}"`);
  return { ...recording, request: { ...recording.request, headers: [[name, value]] } };
}
