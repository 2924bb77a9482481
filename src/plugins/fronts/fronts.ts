// Names the records of a response in Surrogate-Key, and bans the responses of changed records in the caches in front.
import { hash } from 'node:crypto';
import type { Deleted } from '../../cache/store.js';
import { onceAMinute, pause } from '../../clock.js';
import { ServiceError } from '../../errors.js';
import { GLOBAL_NAMESPACE, type HandleRef } from '../../handle/handle.js';
import type { Host } from '../../host.js';
import type { Metrics } from '../../observe/metrics.js';
import type { Started } from '../../plugin.js';
import { SerialFlight } from '../../resolver/single-flight.js';
import { createSender } from '../../upstream/connections.js';
import { fetchRemedy } from '../../upstream/failure.js';
import { type FrontsConfig, METRICS } from './plugin.js';

/** Characters of a key. A fixed length, so that no key is part of a different one or exceeds Varnish's limits. */
const KEY_CHARS = 16;
/** Keys in one ban, by the 8 KiB that Varnish accepts in a request header. More keys ban everything. */
const MAX_KEYS = 400;
/** Matches every key, and so every stored response. */
const EVERYTHING = '.';

const surrogateKey = (name: string): string => hash('sha1', name, 'base64url').slice(0, KEY_CHARS);

/** Returns the keys of a response: of each record, and of all records of its prefix. */
const surrogateKeys = ({ key }: HandleRef): string[] => [
  surrogateKey(key),
  surrogateKey(key.slice(0, key.indexOf('/') + 1)),
];

/** Returns the key of all responses that may depend on deleted entries. */
function keyToBan(deleted: Deleted): string {
  // The lists of the global namespace apply to the redirects of all prefixes.
  if ('key' in deleted) return deleted.key === GLOBAL_NAMESPACE.key ? EVERYTHING : surrogateKey(deleted.key);
  const slash = deleted.prefix.indexOf('/');
  return slash === -1 ? EVERYTHING : surrogateKey(deleted.prefix.slice(0, slash + 1));
}

export function start(host: Host, settings: FrontsConfig, connect = () => createSender()): Started {
  const { urls, unconfirmedWrites, settleMs } = settings.fronts;
  const fronts = urls.map((url) => new Front(url, host, settings.fronts, connect()));
  return {
    recordHeaders: (handles) => [['Surrogate-Key', handles.flatMap(surrogateKeys).join(' ')]],
    async published(deleted) {
      // A response that was rendered before the invalidation may still be on its way to a front. The front
      // stores it within this time or not at all, and bans only what it has stored.
      await pause(host.clock, settleMs);
      const key = keyToBan(deleted);
      const confirmed = await Promise.all(fronts.map((front) => front.banKey(key)));
      if (unconfirmedWrites === 'reject' && confirmed.includes(false))
        throw new ServiceError('INVALIDATION_UNCONFIRMED', {
          detail: 'a cache in front has not confirmed the invalidation',
          retryAfterMs: 1000,
        });
    },
    close: async () => {
      await Promise.all(fronts.map((front) => front.close()));
    },
  };
}

const REMEDY =
  'check fronts.urls, and that its VCL admits BAN requests from this address ("Varnish in front")';

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}

/**
 * A cache in front, with one ban in flight; keys that come meanwhile share the next. After an unconfirmed ban
 * it is emptied. So it is at the start, because an earlier process may have ended before its last ban. Each confirmed ban is
 * repeated once: a cache that stops after the headers of a response, and resumes, may ban before it stores the response.
 */
class Front {
  readonly #count: ReturnType<Metrics['counterOf']>;
  readonly #bans = new SerialFlight<boolean>();
  /** The keys of the next ban, and whether it is repeated for them. */
  #keys = new Map<string, boolean>();
  #isFailing = false;
  #isLogged = false;
  readonly #logFailure: (error: unknown) => void;
  #cancelRetry: () => void = () => undefined;
  #isClosed = false;

  constructor(
    private readonly url: string,
    private readonly host: Host,
    private readonly settings: FrontsConfig['fronts'],
    private readonly outgoing: ReturnType<typeof createSender>,
  ) {
    this.#count = host.metrics.counterOf(METRICS.bans);
    this.#logFailure = onceAMinute(host.clock, (_count, error: unknown) => {
      this.#isLogged = true;
      const remedy = fetchRemedy(error, 'fronts.urls') ?? REMEDY;
      const details = { front: url, reason: reasonOf(error), remedy };
      host.log.warn(details, 'cache in front does not confirm bans, retrying');
    });
    void this.banKey(EVERYTHING);
  }

  /** Bans the responses with a key. Resolves to whether the front has confirmed it. */
  banKey(key: string, isRepeated = true): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    this.#keys.set(key, isRepeated || this.#keys.get(key) === true);
    return this.#bans.join('', () => this.#send());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.outgoing.close();
  }

  async #send(): Promise<boolean> {
    const keys = this.#keys;
    this.#keys = new Map();
    if (this.#isFailing) keys.set(EVERYTHING, true);
    const isEverything = keys.has(EVERYTHING) || keys.size > MAX_KEYS;
    try {
      await this.#ban(isEverything ? EVERYTHING : [...keys.keys()].join('|'));
      this.#confirm();
      this.#repeatLater(keys);
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #repeatLater(keys: ReadonlyMap<string, boolean>): void {
    const repeat = (): void => {
      for (const [key, isRepeated] of keys) if (isRepeated) void this.banKey(key, false);
    };
    this.host.clock.after(this.settings.repeatMs, repeat);
  }

  /** Sends a ban. @throws Error unless the front confirms it */
  async #ban(keys: string): Promise<void> {
    const ban = { method: 'BAN', headers: { 'Surrogate-Key': keys } };
    const { status, headers } = await this.outgoing.send(`${this.url}/`, ban, this.settings.timeoutMs);
    // A web server that ignores the method answers 200 too.
    if (status !== 200 || headers.get('surrogate-banned') !== keys)
      throw new Error(`it responded to BAN with ${status}, without Surrogate-Banned`);
  }

  #confirm(): void {
    this.#count({ result: 'confirmed' });
    this.#isFailing = false;
    if (this.#isLogged) this.host.log.info({ front: this.url }, 'cache in front emptied, it confirms bans');
    this.#isLogged = false;
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return;
    this.#count({ result: 'unconfirmed' });
    this.#logFailure(error);
    this.#isFailing = true;
    this.#cancelRetry();
    this.#cancelRetry = this.host.clock.after(this.settings.retryMs, () => void this.banKey(EVERYTHING));
  }
}
