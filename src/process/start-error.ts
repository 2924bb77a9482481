// Why a process cannot start, and its exit code.
import { ConfigError } from '../config/load.js';

/** Exit code for an unusable configuration: 2 is the convention for wrong usage. */
export const EXIT_CONFIG = 2;

const EXIT_FAILED = 1;

export class StartError extends Error {
  readonly exitCode: number;

  constructor(message: string, { exitCode, cause }: { exitCode: number; cause?: unknown }) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Of anything that was thrown during a start. */
export function toStartError(error: unknown): StartError {
  if (error instanceof StartError) return error;
  if (error instanceof ConfigError) {
    return new StartError(error.message, { exitCode: EXIT_CONFIG, cause: error });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new StartError(`The proxy cannot start: ${reason}`, { exitCode: EXIT_FAILED, cause: error });
}
