// Classifies errors of Redis, and reports each reason once.

const MAX_REASON_LENGTH = 200;

/** Redis answers, but is full, read-only, or holds another type under this key. */
export const concernsOneCommand = (error: unknown): boolean =>
  error instanceof Error && /\b(OOM|WRONGTYPE|MISCONF|NOREPLICAS)\b/.test(error.message);

/** An error reply of Redis itself, such as NOPERM or CLUSTERDOWN. */
export const isErrorReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

export const timeoutError = (): Error => new Error('Redis did not answer in time');

const MAX_REASONS = 10;

/** Reports each reason why Redis cannot be used once, until Redis is back. */
export class TroubleReporter {
  readonly #onTrouble: ((reason: string) => void) | undefined;
  readonly #reasons = new Set<string>();

  constructor(onTrouble: ((reason: string) => void) | undefined) {
    this.#onTrouble = onTrouble;
  }

  report(error: unknown): void {
    const reason = reasonOf(error);
    if (this.#reasons.size >= MAX_REASONS || this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#onTrouble?.(reason);
  }

  /** Called when Redis is back. */
  clear(): void {
    this.#reasons.clear();
  }
}

/** The message without the arguments of the command: a Redis that does not know AUTH quotes the password. */
export function reasonOf(error: unknown): string {
  const { message, code, lastNodeError } = error as Error & { code?: string; lastNodeError?: unknown };
  if (lastNodeError instanceof Error) return reasonOf(lastNodeError);
  // For a name with several addresses node gives only a code (AggregateError).
  const text = message === '' ? (code ?? 'unknown') : message;
  return text.replace(/[,.]? with args beginning with.*$/s, '').slice(0, MAX_REASON_LENGTH);
}
