// Admits requests and messages of clients: determines the caller, and asks the judges of plugins once.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isIP, isIPv4 } from 'node:net';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { type Hooks, type Judgement, firstOf } from '../hooks.js';
import { type Admit, type ClientAddress, type RequestContext, contextOf } from '../http/context.js';
import type { RefusalOfHandle } from '../http/error-reply.js';
import type { Listener } from '../http/route-table.js';
import { maybe, maybeAll } from '../maybe.js';
import { type IsTrustedProxy, clientAt } from '../http/client-address.js';
import { type Caller, type CallerClass, UNKNOWN_CLIENTS, proxiesIn } from '../upstream/caller.js';

export interface Admission {
  /** Judges a request before it is answered from memory; undefined if no judge concerns hits. */
  judgeHits: Listener | undefined;
  /** Returns the refusal of a judged request, if any; undefined if no judge concerns hits. */
  refusalOf: ((req: IncomingMessage) => ServiceError | undefined) | undefined;
  /** Judges a request once, and returns its caller, which the context keeps. */
  admit: Admit;
  /** Judges a miss over TCP (UDP addresses can be forged). @throws ServiceError of a judge */
  admitMessage: (address: string, handle: HandleRef) => Caller | Promise<Caller>;
  /** Judges a handle that a judged request names in its body or among many; undefined if no judge does. */
  refusalOfHandle: RefusalOfHandle | undefined;
  /** Charges a judged request for `more` handles. @throws ServiceError when it exceeds a limit */
  charge: (req: IncomingMessage, more: number) => Promise<void>;
}

/** Creates the admission. All judges judge each request; the first refusal and the first class count. */
export function createAdmission({ admission }: Hooks, isTrustedProxy: IsTrustedProxy): Admission {
  const judges = admission.flatMap((create) => create() ?? []);
  const judged = new WeakMap<IncomingMessage, readonly Judgement[]>();
  const judgementsOf = (req: IncomingMessage): readonly Judgement[] => judged.get(req) ?? [];

  function judgeOnce(
    req: IncomingMessage,
    res: ServerResponse,
    place: RequestContext,
  ): readonly Judgement[] | Promise<readonly Judgement[]> {
    const known = judged.get(req);
    if (known !== undefined) return known;
    const request = { req, res, place, address: place.client.address };
    return maybe(maybeAll(judges.map(({ judge }) => judge(request))), (judgements) => {
      judged.set(req, judgements);
      return judgements;
    });
  }

  const judgesHits = judges.some((judge) => judge.judgesHits === true);
  return {
    judgeHits: judgesHits ? (req, res) => judgeOnce(req, res, contextOf(res)) : undefined,
    refusalOf: judgesHits ? (req) => refusalIn(judgementsOf(req)) : undefined,
    admit(req, res, context) {
      const { client, caller } = context;
      if (caller !== undefined) return caller;
      // The address is that of the peer, unless a trusted peer names another.
      const isProxy = client.peer.isTrusted && isTrustedProxy(client.address);
      // The target of a miss is not parsed a second time if there is no judge.
      if (judges.length === 0) return (context.caller = callerOf(client, isProxy, req.headers));
      return maybe(judgeOnce(req, res, context), (judgements) => {
        context.caller = callerOf(client, isProxy, req.headers, admittedClass(judgements));
        return context.caller;
      });
    },
    admitMessage(given, handle) {
      const client = clientAt(given);
      const { address } = client;
      // Behind a load balancer the client is unknown, and a closed connection has no address.
      if (isIP(address) === 0 || isTrustedProxy(address)) return UNKNOWN_CLIENTS;
      return maybe(
        maybeAll(judges.map(({ judgeMessage }) => judgeMessage?.({ address, handle }) ?? {})),
        (judgements) => callerOf(client, false, {}, admittedClass(judgements)),
      );
    },
    refusalOfHandle: judges.some(({ judgesHandles }) => judgesHandles === true)
      ? async (req, handle) => {
          for (const judgement of judgementsOf(req)) {
            const refusal = await judgement.refusalOfHandle?.(handle);
            if (refusal !== undefined) return refusal;
          }
          return undefined;
        }
      : undefined,
    async charge(req, more) {
      for (const judgement of judgementsOf(req)) await judgement.charge?.(more);
    },
  };
}

const refusalIn = (judgements: readonly Judgement[]): ServiceError | undefined =>
  firstOf(judgements, ({ refusal }) => refusal);

function admittedClass(judgements: readonly Judgement[]): CallerClass | undefined {
  const refusal = refusalIn(judgements);
  if (refusal) throw refusal;
  return firstOf(judgements, ({ callerClass }) => callerClass);
}

/** `isProxy`: whether the address is that of a trusted proxy. */
function callerOf(
  { address, network, isLocal }: ClientAddress,
  isProxy: boolean,
  { priority, via }: IncomingHttpHeaders,
  given: CallerClass = isBackground(priority) ? 'background' : 'normal',
): Caller {
  // Trusted proxies are not clients, and local programs belong to the operator.
  const isCharged = given !== 'preferred' && !isProxy && isIP(address) !== 0 && !isLocal;
  return {
    class: given,
    client: isIPv4(address) ? address : network,
    network: isCharged ? network : undefined,
    via: via === undefined ? undefined : proxiesIn(via),
  };
}

/** Urgency 7 is for background tasks (RFC 9218 §4.1). A client may only lower its own class. */
const isBackground = (priority: string | string[] | undefined): boolean =>
  priority !== undefined && /^\s*u=7(?:\s*,|\s*$)/.test(priority.toString());
