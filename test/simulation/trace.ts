// The trace of a simulation as a hash: runs with equal hashes are identical. It can retain its newest lines.

export class Trace {
  readonly #kept: number;
  #lines: string[] = [];
  #high = 0x811c9dc5;
  #low = 0x1234567;

  /** Creates a trace that retains the newest `kept` lines. */
  constructor(kept = 0) {
    this.#kept = kept;
  }

  note(at: number, line: string): void {
    // Integer microseconds fit into 53 bits for 285 years.
    const micros = Math.round(at * 1000);
    this.#mix(micros % 2 ** 32);
    this.#mix(line.length);
    for (let index = 0; index < line.length; index++) this.#mix(line.charCodeAt(index));
    if (this.#kept > 0) this.#keep(`${(micros / 1000).toFixed(3)} ${line}`);
  }

  get hash(): string {
    return [this.#high, this.#low].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** The newest lines, each with its time in ms. */
  get lines(): readonly string[] {
    return this.#lines.slice(-this.#kept);
  }

  #mix(value: number): void {
    this.#high = Math.imul(this.#high ^ value, 0x01000193);
    this.#low = Math.imul((this.#low << 5) | (this.#low >>> 27), 0x9e3779b1) ^ value;
  }

  #keep(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > 2 * this.#kept) this.#lines = this.#lines.slice(-this.#kept);
  }
}
