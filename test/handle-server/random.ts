// Everything the demo server draws by lot, in one place so that a test can hand in what was recorded.
import { randomBytes, randomUUID } from 'node:crypto';

export interface Random {
  /** Id and nonce of a new session; the nonce is sixteen bytes in base64. */
  session: () => { sessionId: string; nonce: string };
  /** What is minted behind a handle. */
  suffix: () => string;
}

export const systemRandom: Random = {
  session: () => ({
    sessionId: `node0${BigInt(`0x${randomBytes(12).toString('hex')}`).toString(36)}`,
    nonce: randomBytes(16).toString('base64'),
  }),
  suffix: randomUUID,
};
