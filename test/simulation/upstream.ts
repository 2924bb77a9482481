// The Handle server: each write increments the version of a record. Each process reaches the server over a
// line that may be cut. The server may be slow, reject requests, or lose responses.
import { untilDeadline } from '../../src/clock.js';
import type { Scheduler } from './clock.js';
import type { Entry } from '../../src/cache/entry.js';
import { ServiceError } from '../../src/errors.js';
import type { Bytes } from '../../src/handle/bytes.js';
import { type Outcome, RESPONSE_CODE } from '../../src/handle/outcome.js';
import type { ListAnswer } from '../../src/upstream/reply.js';
import { partial } from '../support/partial.js';
import { Line } from './network.js';
import type { Process } from './process.js';
import type { Random } from './random.js';

export const PREFIX = '21.T';
export const READ_TIMEOUT_MS = 3000;
export const WRITE_TIMEOUT_MS = 5000;

/** Versions one below a multiple of this number mean that the record does not exist. */
const MISSING_EVERY = 5;
const SHORT_TTL_SECONDS = 3;
const LONG_TTL_SECONDS = 86_400;

export class Upstream {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #handles: readonly string[];
  readonly #versions = new Map<string, number>();
  readonly #lines = new Map<string, Line>();
  /** Additional delay in ms. */
  extraMs = 0;
  readCount = 0;

  constructor(scheduler: Scheduler, random: Random, handles: readonly string[] = []) {
    this.#scheduler = scheduler;
    this.#random = random.stream('upstream');
    this.#handles = handles;
  }

  version(handle: string): number {
    return this.#versions.get(handle) ?? 0;
  }

  /** Changes a record, as a write through the proxy or a direct change does. */
  change(handle: string): number {
    const version = this.version(handle) + 1;
    this.#versions.set(handle, version);
    return version;
  }

  line(process: Process): Line {
    const line = this.#lines.get(process.name) ?? new Line();
    this.#lines.set(process.name, line);
    return line;
  }

  /** Reads a record. @throws ServiceError UPSTREAM_TIMEOUT */
  read(process: Process, handle: string): Promise<Outcome> {
    this.readCount++;
    return this.#call(process, READ_TIMEOUT_MS, `reads ${handle}`, () => this.#outcome(handle));
  }

  /** Lists the handles. @throws ServiceError UPSTREAM_TIMEOUT */
  list(process: Process): Promise<ListAnswer> {
    return this.#call(process, READ_TIMEOUT_MS, 'lists the handles', () => {
      const handles = this.#handles.filter((handle) => exists(this.version(handle)));
      const members = { totalCount: String(handles.length) };
      return partial<ListAnswer>({ status: 200, responseCode: RESPONSE_CODE.success, members, handles });
    });
  }

  /**
   * Writes a record, and calls `onWritten`. Resolves with the new version, or undefined for a rejected write.
   * @throws ServiceError UPSTREAM_TIMEOUT when the outcome is unknown
   */
  write(
    process: Process,
    handle: string,
    onWritten: (version: number) => void = () => undefined,
  ): Promise<number | undefined> {
    const isRefused = this.#random.chance(0.05);
    return this.#call(process, WRITE_TIMEOUT_MS, `writes ${handle}`, () => {
      if (isRefused) return undefined;
      const version = this.change(handle);
      onWritten(version);
      return version;
    });
  }

  /** Reads the version of a record for the condition of a write. @throws ServiceError UPSTREAM_TIMEOUT */
  readVersion(process: Process, handle: string): Promise<number> {
    return this.#call(process, READ_TIMEOUT_MS, `reads ${handle} before a write`, () => this.version(handle));
  }

  #call<T>(process: Process, timeoutMs: number, label: string, run: () => T): Promise<T> {
    const line = this.line(process);
    const { life } = process;
    const answer = new Promise<T>((resolve) => {
      this.#cross(line, `upstream ${label}`, () => {
        const result = run();
        this.#cross(line, `upstream answers ${process.name}`, () => {
          // A restarted process has new connections.
          if (process.life !== life) return;
          process.post(0, `reads from upstream`, () => {
            resolve(result);
          });
        });
      });
    });
    const late = (): Error => new ServiceError('UPSTREAM_TIMEOUT', {});
    return untilDeadline(answer, timeoutMs, late, process.clock);
  }

  #cross(line: Line, label: string, arrived: () => void): void {
    const isSlow = this.#random.chance(0.02);
    const delayMs = this.#random.between(0.5, isSlow ? 500 : 10) + this.#random.between(0, this.extraMs);
    const arrive = (): void => {
      if (line.isCut) line.whenMended(arrive);
      else arrived();
    };
    this.#scheduler.after(delayMs, label, arrive);
  }

  #outcome(handle: string): Outcome {
    const version = this.version(handle);
    if (!exists(version)) return { kind: 'not-found', message: String(version) };
    const ttl = version % 3 === 0 ? SHORT_TTL_SECONDS : LONG_TTL_SECONDS;
    const value = { index: 1, type: 'VERSION', data: { format: 'string', value: String(version) } };
    return { kind: 'found', values: JSON.stringify([value]) as Bytes, ttls: [ttl] };
  }
}

/** Whether the record exists in this version. */
export const exists = (version: number): boolean => version % MISSING_EVERY !== MISSING_EVERY - 1;

/** Returns the version from which an entry was created. */
export function versionOf(entry: Entry): number {
  if (entry.kind === 'not-found') return Number(entry.message);
  const [{ data }] = JSON.parse(entry.values) as [{ data: { value: string } }];
  return Number(data.value);
}
