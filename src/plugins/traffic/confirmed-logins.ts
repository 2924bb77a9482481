// Logins that the Handle server has accepted. Unconfirmed names are not trusted, because clients can invent
// them.
import type { ServerResponse } from 'node:http';
import { contextOf, hasContext } from '../../http/context.js';
import { type ChecksLogin, identityOf } from '../../http/identity.js';
import { networkOf } from '../../server/client-address.js';
import type { TrafficFacts } from './rules.js';

type LoginFacts = Pick<TrafficFacts, 'credentials' | 'address'>;

/** Maximum number of confirmed logins; above it, the oldest login must be confirmed again. */
const MAX_LOGINS = 10_000;

/** Confirmed logins by identity and network; a confirmation is valid only in its network. */
export class ConfirmedLogins {
  readonly #logins = new Set<string>();
  readonly #checksLogin: ChecksLogin;

  constructor(checksLogin: ChecksLogin) {
    this.#checksLogin = checksLogin;
  }

  has(facts: LoginFacts): boolean {
    return this.#logins.has(loginOf(facts));
  }

  /** Confirms a login once the Handle server has checked it and executed the request. */
  watch(res: ServerResponse, facts: LoginFacts): void {
    res.once('finish', () => {
      const isDone = res.statusCode >= 200 && res.statusCode < 300;
      if (isDone && this.#isChecked(res, facts)) this.#add(loginOf(facts));
    });
  }

  /**
   * Whether the Handle server has checked the login. It checks the login of every write; a request that it
   * does not receive succeeds with any login.
   */
  #isChecked(res: ServerResponse, { credentials }: LoginFacts): boolean {
    if (!hasContext(res)) return false;
    const { result, handle } = contextOf(res);
    if (result === 'write') return true;
    return result === 'bypass' && handle !== undefined && this.#checksLogin(handle, credentials);
  }

  #add(login: string): void {
    this.#logins.add(login);
    const [oldest] = this.#logins;
    if (this.#logins.size > MAX_LOGINS && oldest !== undefined) this.#logins.delete(oldest);
  }
}

const loginOf = ({ credentials, address }: LoginFacts): string =>
  `${identityOf(credentials) ?? ''} ${networkOf(address)}`;
