// Checks before a measurement that a peer's responses match the upstream's, because speed with wrong
// responses is meaningless.
import { isDeepStrictEqual } from 'node:util';
import type { Peer } from '../peers/peer.js';

/** @throws Error if a response differs from the upstream's */
export async function assertRightAnswers(
  peer: Peer,
  targets: readonly string[],
  sourceUrl: string,
): Promise<void> {
  for (const target of targets) {
    const wanted = await answerOf(sourceUrl + target);
    for (let times = 0; times < ASKED_TIMES; times++) {
      const given = await answerOf(peer.url + target);
      if (isDeepStrictEqual(given, wanted)) continue;
      throw new Error(
        `${peer.name} answers ${target} with ${JSON.stringify(given)}, not with ${JSON.stringify(wanted)}`,
      );
    }
  }
}

/** Requests per target: served by the upstream, by the cache, and by the prepared response. */
const ASKED_TIMES = 3;

async function answerOf(url: string): Promise<unknown> {
  const answer = await fetch(url, { redirect: 'manual' });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
  return {
    status: answer.status,
    location: answer.headers.get('location'),
    body: isJson ? (JSON.parse(text) as unknown) : text,
  };
}
