// The part of negotiator that is used here; the package has no types.
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { headers: { accept: string | undefined } });
    /** The acceptable types among `available`, the most preferred first. */
    mediaTypes(available: readonly string[]): string[];
  }
}
