// Logins that the Handle server has accepted. A client can invent any number of unconfirmed names.
import type { ServerResponse } from 'node:http';
import { contextOf, hasContext } from '../http/context.js';
import { type ChecksLogin, identityOf } from '../http/identity.js';
import { networkOf } from '../server/client-address.js';
import type { TrafficFacts } from './rules.js';

type LoginFacts = Pick<TrafficFacts, 'credentials' | 'address'>;

/** Maximum number of logins; beyond it the login that was confirmed first has to be confirmed again. */
const MAX_LOGINS = 10_000;

/** Logins by identity and network: a login confirmed in one network does not confirm the same name in another. */
export class ConfirmedLogins {
  readonly #logins = new Set<string>();
  readonly #checksLogin: ChecksLogin;

  constructor(checksLogin: ChecksLogin) {
    this.#checksLogin = checksLogin;
  }

  has(facts: LoginFacts): boolean {
    return this.#logins.has(loginOf(facts));
  }

  /** Confirms the login when the Handle server carries out its request and has checked it for that. */
  watch(res: ServerResponse, facts: LoginFacts): void {
    res.once('finish', () => {
      const isDone = res.statusCode >= 200 && res.statusCode < 300;
      if (isDone && this.#isChecked(res, facts)) this.#add(loginOf(facts));
    });
  }

  /** A Handle server never writes without a valid login. Requests that do not reach it are answered with any login. */
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
