// The exit codes of a command, and the error that ends it with one of them.
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** Ends the command with this message on stderr. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}
