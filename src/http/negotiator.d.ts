// Minimal types for negotiator, which ships none.
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { headers: { accept?: string | undefined } });
    /** Returns the acceptable types among `available`, most preferred first. */
    mediaTypes(available: readonly string[]): string[];
  }
}
