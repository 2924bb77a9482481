// Answers that are made but kept back: the time between a server's commit and its acknowledgement.

interface Held {
  method: string;
  send: () => void;
}

export class Hold {
  readonly #methods = new Set<string>();
  #held: Held[] = [];

  /** How many answers are kept back now. */
  get size(): number {
    return this.#held.length;
  }

  /** Requests of this method are carried out from now on, but not answered. */
  begin(method: string): void {
    this.#methods.add(method);
  }

  /** Sends what was kept back, and keeps nothing of this method back any more. */
  end(method: string): void {
    this.#methods.delete(method);
    const due = this.#held.filter((held) => held.method === method);
    this.#held = this.#held.filter((held) => held.method !== method);
    for (const { send } of due) send();
  }

  onAnswer(method: string, send: () => void): void {
    if (this.#methods.has(method)) this.#held.push({ method, send });
    else send();
  }
}
