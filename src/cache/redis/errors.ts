// What an error of Redis is about, and how it is told.

const MOST_REASON_LENGTH = 200;

/** Redis is there, but full, or holds something else under this key, or takes no writes. */
export const concernsOneCommand = (error: unknown): boolean =>
  error instanceof Error && /\b(OOM|WRONGTYPE|MISCONF|NOREPLICAS)\b/.test(error.message);

/** Redis itself said no, such as NOPERM or CLUSTERDOWN. */
export const isErrorReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

export const timeoutError = (): Error => new Error('Redis did not answer in time');

const MOST_REASONS = 10;

/** Reports why Redis cannot be used: each reason once until it is back. */
export class TroubleReporter {
  readonly #onTrouble: ((reason: string) => void) | undefined;
  readonly #reasons = new Set<string>();

  constructor(onTrouble: ((reason: string) => void) | undefined) {
    this.#onTrouble = onTrouble;
  }

  report(error: unknown): void {
    const reason = reasonOf(error);
    if (this.#reasons.size >= MOST_REASONS || this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#onTrouble?.(reason);
  }

  /** Redis is there again. */
  clear(): void {
    this.#reasons.clear();
  }
}

/** What went wrong, without what was sent: a Redis that does not know AUTH quotes the password. */
function reasonOf(error: unknown): string {
  const { message, code, lastNodeError } = error as Error & { code?: string; lastNodeError?: unknown };
  if (lastNodeError instanceof Error) return reasonOf(lastNodeError);
  // Where a name has several addresses node has a code only (AggregateError).
  const said = message === '' ? (code ?? 'unknown') : message;
  return said.replace(/[,.]? with args beginning with.*$/s, '').slice(0, MOST_REASON_LENGTH);
}
