// Streams batch elements as text in order: loads ahead within limits, with backpressure from the client.
import type { HandleRef } from '../../handle/handle.js';

export interface RenderedElement {
  text: string;
  readChars: number;
}

export interface UnloadedElement {
  handle: HandleRef;
  load: () => Promise<RenderedElement>;
}

type StartedElement = RenderedElement | UnloadedElement;

/** Starts the element of a handle; `name` is the client's spelling. */
export type StartElement = (name: string) => StartedElement | Promise<StartedElement>;

interface BatchWork {
  startElement: StartElement;
  names: readonly string[];
  signal: AbortSignal;
  /** Receives the number of bytes held for elements that the client has not read. */
  hold: (bytes: number) => void;
}

/** Yields the comma-separated elements in chunks. */
export type StreamElements = (work: BatchWork) => AsyncGenerator<Buffer>;

/** Minimum length of a chunk of ready elements, each of which is a separate write. */
const CHUNK_CHARS = 16 * 1024;

/** Maximum length of a chunk. The rest of a long element waits outside the V8 heap until it is read. */
const MAX_CHUNK_BYTES = 64 * 1024;

/** Maximum work for elements that are ready but wait for an earlier element or for a full chunk. */
const MAX_AHEAD_CHARS = 64 * 1024;

const workOf = ({ text, readChars }: RenderedElement): number => Math.max(text.length, readChars);

/** A server, or the servers of a prefix without a configured one. */
interface LoadSource {
  name: string;
  concurrency: number;
}

/** Divisors of a source's concurrency: a batch uses a quarter of it, and all batches together half. */
const [OF_BATCH, OF_ALL] = [4, 2];

/** `maxConcurrency`: the highest concurrency of a source. */
export function createStreamElements(
  maxConcurrency: number,
  sourceOf: (handle: HandleRef) => LoadSource,
): StreamElements {
  const inSlotOfAll = createSlotsBySource(OF_ALL);

  return async function* streamElements(work) {
    const inSlotOfBatch = createSlotsBySource(OF_BATCH);
    const ahead = new LookAhead(work, partOf(maxConcurrency, OF_BATCH), ({ handle, load }) => {
      const source = sourceOf(handle);
      const loadNow = () => {
        work.signal.throwIfAborted();
        return load();
      };
      return inSlotOfBatch(source, () => inSlotOfAll(source, loadNow));
    });
    let chunk = '';
    let chunkWork = 0;
    let separator = '';
    function* takeChunk(): Generator<Buffer> {
      const bytes = Buffer.from(chunk);
      chunk = '';
      chunkWork = 0;
      for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
        ahead.holdRest(bytes.length - at);
        yield bytes.subarray(at, at + MAX_CHUNK_BYTES);
      }
      ahead.holdRest(0);
    }
    for (let head = await ahead.head(); head !== undefined; head = await ahead.head()) {
      if (head.rendered === undefined) {
        // Ready elements are sent before the next wait.
        yield* takeChunk();
        await head.loaded;
      }
      chunkWork += workOf(head.rendered ?? NOTHING);
      chunk += separator + ahead.shift();
      separator = ',';
      if (chunk.length >= CHUNK_CHARS || chunkWork >= MAX_AHEAD_CHARS) yield* takeChunk();
    }
    yield* takeChunk();
  };
}

interface BatchElement {
  rendered: RenderedElement | undefined;
  loaded: Promise<void>;
}

const READY = Promise.resolve();
const NOTHING: RenderedElement = { text: '', readChars: 0 };

/** The queue of unsent elements; `map` of Node's streams is experimental, and counts them as loads. */
class LookAhead {
  readonly #queue: BatchElement[] = [];
  #started = 0;
  #loading = 0;
  #readyWork = 0;
  #readyChars = 0;
  #restBytes = 0;

  constructor(
    private readonly work: BatchWork,
    private readonly maxLoads: number,
    private readonly loadInSlot: (unloaded: UnloadedElement) => Promise<RenderedElement>,
  ) {}

  /** Starts elements up to the limits, and returns the head of the queue; undefined at the end. */
  async head(): Promise<BatchElement | undefined> {
    const { names, signal, startElement } = this.work;
    while (this.#loading < this.maxLoads && this.#readyWork < MAX_AHEAD_CHARS && !signal.aborted) {
      const name = names[this.#started];
      if (name === undefined) break;
      this.#started++;
      this.#queue.push(this.#add(await startElement(name)));
    }
    return this.#queue[0];
  }

  /** Removes the head, which must be ready, and returns its text. */
  shift(): string {
    const head = this.#queue.shift();
    const { rendered = NOTHING } = head ?? {};
    // The caller may still refer to the head while the client reads.
    if (head !== undefined) head.rendered = undefined;
    this.#addReady(rendered, -1);
    return rendered.text;
  }

  holdRest(bytes: number): void {
    this.#restBytes = bytes;
    this.work.hold(this.#readyChars + bytes);
  }

  #addReady(rendered: RenderedElement, sign: 1 | -1): void {
    this.#readyWork += sign * workOf(rendered);
    this.#readyChars += sign * rendered.text.length;
    if (sign > 0) this.holdRest(this.#restBytes);
  }

  #add(started: StartedElement): BatchElement {
    if ('load' in started) return this.#load(started);
    this.#addReady(started, 1);
    return { rendered: started, loaded: READY };
  }

  #load(unloaded: UnloadedElement): BatchElement {
    this.#loading++;
    const loaded = this.loadInSlot(unloaded)
      .then((rendered) => {
        element.rendered = rendered;
        this.#addReady(rendered, 1);
      })
      .finally(() => {
        this.#loading--;
      });
    // Nothing awaits the promise after the client has disconnected.
    loaded.catch(() => undefined);
    const element: BatchElement = { rendered: undefined, loaded };
    return element;
  }
}

const partOf = (concurrency: number, divisor: number): number =>
  Math.max(1, Math.floor(concurrency / divisor));

/** Runs at most a part of each source's concurrency, first come, first served; a server that hangs delays no other. */
function createSlotsBySource(divisor: number) {
  const slotsOf = new Map<string, { running: number; waiting: (() => void)[] }>();
  return async function inSlotOf<T>({ name, concurrency }: LoadSource, work: () => Promise<T>): Promise<T> {
    const slots = slotsOf.get(name) ?? { running: 0, waiting: [] };
    slotsOf.set(name, slots);
    if (slots.running < partOf(concurrency, divisor)) slots.running++;
    else await new Promise<void>((resolve) => slots.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = slots.waiting.shift();
      if (next !== undefined) next();
      else if (--slots.running === 0) slotsOf.delete(name);
    }
  };
}
