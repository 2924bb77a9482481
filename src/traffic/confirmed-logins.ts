// Logins that the Handle server has accepted. A name that nobody has confirmed may be one of as many as a client likes.
import type { ServerResponse } from 'node:http';
import { contextOf, hasContext } from '../http/context.js';
import { identityOf } from '../http/identity.js';
import { networkOf } from '../server/client-address.js';
import type { RequestFacts } from './rule.js';

type LoginFacts = Pick<RequestFacts, 'credentials' | 'address'>;

/** When there are more, the one that was confirmed first has to be confirmed again. */
const MAX_LOGINS = 10_000;

/** By identity and network: the password of an owner confirms no login of another network with the same name. */
export class ConfirmedLogins {
  readonly #logins = new Set<string>();

  has(facts: LoginFacts): boolean {
    return this.#logins.has(loginOf(facts));
  }

  /** Confirms the login when the Handle server answers its request without an error. */
  watch(res: ServerResponse, facts: LoginFacts): void {
    res.once('finish', () => {
      if (res.statusCode < 400 && isFromServer(res)) this.#add(loginOf(facts));
    });
  }

  #add(login: string): void {
    this.#logins.add(login);
    const [oldest] = this.#logins;
    if (this.#logins.size > MAX_LOGINS && oldest !== undefined) this.#logins.delete(oldest);
  }
}

/** Other requests are answered whatever login they bring. */
function isFromServer(res: ServerResponse): boolean {
  const result = hasContext(res) ? contextOf(res).result : undefined;
  return result === 'bypass' || result === 'write';
}

const loginOf = ({ credentials, address }: LoginFacts): string =>
  `${identityOf(credentials) ?? ''} ${networkOf(address)}`;
