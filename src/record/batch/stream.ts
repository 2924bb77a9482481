// The elements of a batch as text, in order: loads ahead within limits, and goes no faster than its reader.
import type { HandleRef } from '../../handle/handle.js';
import type { RunSteps } from '../../http/request-work.js';
import type { Steps } from '../../time-slicer.js';

export interface BatchLimits {
  /** Maximum loads of one batch at a time. */
  perBatch: number;
  /** Maximum loads of all batches of this process at a time, at each server. */
  total: number;
  /** The server that a handle is loaded from. */
  serverOf: (handle: HandleRef) => string | undefined;
}

/** An element, and how many characters of records were read for it. */
export interface RenderedElement {
  text: string;
  readChars: number;
}

/** One whose record memory does not have. */
interface UnloadedElement {
  handle: HandleRef;
  load: () => Promise<RenderedElement>;
}

/** How a handle, as its client spells it, becomes an element. */
export type StartElement = (name: string) => Steps<RenderedElement | UnloadedElement>;

interface BatchWork {
  startElement: StartElement;
  names: readonly string[];
  /** Once it is aborted no further load starts. */
  signal: AbortSignal;
  runSteps: RunSteps;
}

/** How long the records in memory are is seen when they are read. */
const MAX_WORK = Infinity;

/** Yields the elements with commas between, several in one chunk. */
export type StreamElements = (work: BatchWork) => AsyncGenerator<string>;

/** Elements are joined up to about this length: each chunk is a write of its own. */
const CHUNK_CHARS = 16 * 1024;

/** Work for elements that are not sent yet, because one before them is loaded, or because they are short. */
const MAX_AHEAD_CHARS = 64 * 1024;

const workOf = ({ text, readChars }: RenderedElement): number => Math.max(text.length, readChars);

export function createStreamElements({ perBatch, total, serverOf }: BatchLimits): StreamElements {
  const inSlotOf = createSlotsByServer(total);

  return async function* streamElements(work) {
    const ahead = new LookAhead(work, perBatch, ({ handle, load }) =>
      inSlotOf(serverOf(handle), () => {
        work.signal.throwIfAborted();
        return load();
      }),
    );
    let chunk = '';
    let chunkWork = 0;
    let separator = '';
    const findHead = (): BatchElement | undefined | Promise<BatchElement | undefined> =>
      work.runSteps(ahead.head(), MAX_WORK);
    for (let head = await findHead(); head !== undefined; head = await findHead()) {
      if (head.rendered === undefined) {
        // The reader need not wait for what is ready.
        if (chunk !== '') yield chunk;
        chunk = '';
        await head.loaded;
      }
      const next = ahead.shift();
      chunk += separator + next.text;
      chunkWork += workOf(next);
      separator = ',';
      if (chunk.length < CHUNK_CHARS && chunkWork < MAX_AHEAD_CHARS) continue;
      yield chunk;
      chunk = '';
      chunkWork = 0;
    }
    if (chunk !== '') yield chunk;
  };
}

interface BatchElement {
  rendered: RenderedElement | undefined;
  loaded: Promise<void>;
}

const READY = Promise.resolve();

type LoadInSlot = (unloaded: UnloadedElement) => Promise<RenderedElement>;

/**
 * The elements from the next one on, those that are loaded meanwhile included. Not the `map` of Node's streams: that
 * is experimental, and counts what is in memory as loads.
 */
class LookAhead {
  readonly #work: BatchWork;
  readonly #maxLoads: number;
  readonly #loadInSlot: LoadInSlot;
  readonly #queue: BatchElement[] = [];
  #started = 0;
  #loading = 0;
  #readyWork = 0;

  constructor(work: BatchWork, maxLoads: number, loadInSlot: LoadInSlot) {
    this.#work = work;
    this.#maxLoads = maxLoads;
    this.#loadInSlot = loadInSlot;
  }

  /** The next element; undefined at the end. */
  *head(): Steps<BatchElement | undefined> {
    const { names, signal } = this.#work;
    while (this.#loading < this.#maxLoads && this.#readyWork < MAX_AHEAD_CHARS && !signal.aborted) {
      const name = names[this.#started];
      if (name === undefined) break;
      this.#started++;
      this.#queue.push(yield* this.#start(name));
      yield;
    }
    return this.#queue[0];
  }

  /** Removes the head, which must be ready. */
  shift(): RenderedElement {
    const { rendered = { text: '', readChars: 0 } } = this.#queue.shift() ?? {};
    this.#readyWork -= workOf(rendered);
    return rendered;
  }

  *#start(name: string): Steps<BatchElement> {
    const started = yield* this.#work.startElement(name);
    if ('load' in started) return this.#load(started);
    this.#readyWork += workOf(started);
    return { rendered: started, loaded: READY };
  }

  #load(unloaded: UnloadedElement): BatchElement {
    this.#loading++;
    const loaded = this.#loadInSlot(unloaded)
      .then((rendered) => {
        element.rendered = rendered;
        this.#readyWork += workOf(rendered);
      })
      .finally(() => {
        this.#loading--;
      });
    // When the client has left, nobody waits for it.
    loaded.catch(() => undefined);
    const element: BatchElement = { rendered: undefined, loaded };
    return element;
  }
}

type InSlot = <T>(work: () => Promise<T>) => Promise<T>;

/** The loads of one server do not wait for those of another, which may hang. */
function createSlotsByServer(
  total: number,
): <T>(server: string | undefined, work: () => Promise<T>) => Promise<T> {
  const slots = new Map<string | undefined, InSlot>();
  return function inSlotOf(server, work) {
    const inSlot = slots.get(server) ?? createSlots(total);
    slots.set(server, inSlot);
    return inSlot(work);
  };
}

/** Runs at most `total` loads at a time, first come, first served: batches take turns. */
function createSlots(total: number): InSlot {
  const waiting: (() => void)[] = [];
  let free = total;
  return async function inSlot(work) {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  };
}
