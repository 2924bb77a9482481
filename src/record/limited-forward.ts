// Sends requests on only as fast as the upstream takes them: each waits for its turn first.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { upperAscii } from '../handle/handle.js';
import { type Gate, type GiveWay, callerKey } from '../upstream/concurrency-limiter.js';
import { contextOf } from '../http/context.js';
import type { Forward } from './forward.js';

/** A turn lasts until the answer has been read to its end, or until others need it more than a client that does not read. */
export function createGatedForward(forward: Forward, gate: Pick<Gate, 'enter' | 'offer'>): Forward {
  return async function gatedForward(req, res, sending) {
    const { handle } = contextOf(res);
    const leave = await gate.enter(handle && callerKey(upperAscii(handle), req.headers.authorization));
    try {
      // Nothing has been sent yet, so nothing has to be: http-proxy would not notice that nobody waits.
      if (req.socket.destroyed) throw new ServiceError('BAD_REQUEST', { detail: 'the client has gone' });
      const answer = await forward(req, res, sending);
      const takeBack = gate.offer(createGiveWay(answer, res));
      answer.once('close', () => {
        takeBack();
        leave();
      });
      return answer;
    } catch (error) {
      leave();
      throw error;
    }
  };
}

/** Cuts off a client that has taken nothing for so long; one that reads is never cut, however much there is. */
function createGiveWay(answer: IncomingMessage, res: ServerResponse): GiveWay {
  let movedAt = performance.now();
  res.on('drain', () => {
    movedAt = performance.now();
  });
  return (atLeastMs) => {
    const isStalled = res.writableNeedDrain && performance.now() - movedAt >= atLeastMs;
    if (isStalled) answer.destroy();
    return isStalled;
  };
}
