// How a command ends.
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** Ends the command with a sentence for whoever called it. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}
