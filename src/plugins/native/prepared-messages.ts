// Prepared responses to repeated native requests, updated only in request id, site serial and expiration.
import type { Host } from '../../host.js';
import type { Prepared, PreparedName } from '../../cache/prepared-cache.js';
import type { PreparedHit } from '../../observe/hits.js';
import { ENVELOPE_BYTES, OP_FLAG, frame, FULL_PACKET_BYTES, toPackets, type Request } from './codec.js';
import { type AnsweredMessage, expirationAt, type Transport } from './reply.js';
import { reportHit } from './message-log.js';
import { METRICS } from './plugin.js';
import type { SiteInfo } from './site-record.js';

interface PreparedText extends PreparedHit {
  /** One character per byte. For UDP: concatenated packets, all but the last of full length. */
  text: string;
  isTooLong: boolean;
}

interface PreparedMessage extends Prepared {
  /** For clients without a shorter maximum. */
  whole: PreparedText | undefined;
  /** For clients whose maximum the response exceeds. */
  refusal: PreparedText | undefined;
}

interface RawRequest {
  /** Raw envelope and message; undefined for a fragmented message. */
  received?: Buffer;
  transport: Transport;
  /** Maximum length of the response for this client; undefined for that of all messages. */
  maxAnswerBytes?: number | undefined;
}

/** Maximum length of a request with a prepared response (bytes); longer ones list many types. */
const MAX_REQUEST_BYTES = 1024;
/** Length of envelope, header and body length field (bytes). */
const MIN_REQUEST_BYTES = 44;

const LENGTH_AT = 16;
const REQUEST_ID_AT = 8;
const SITE_SERIAL_AT = ENVELOPE_BYTES + 12;
const EXPIRATION_AT = ENVELOPE_BYTES + 16;
const TRANSPORTS = ['tcp', 'udp'] as const;
type PreparedTransport = (typeof TRANSPORTS)[number];

/** Whether the response depends only on the request's key bytes, the entry and the time. */
const isPreparableMessage = ({ header: { flags } }: Request): boolean =>
  (flags & OP_FLAG.publicOnly) !== 0 && (flags & (OP_FLAG.authoritative | OP_FLAG.returnDigest)) === 0;

/** Returns the response to a client with this maximum (bytes). */
function textWithin(maxBytes: number, { whole, refusal }: PreparedMessage): PreparedText | undefined {
  if (maxBytes === Infinity) return whole;
  // The refusal of a record that is too long for any message gives other advice.
  return whole === undefined || whole.isTooLong || whole.text.length > maxBytes ? refusal : whole;
}

function textOfReply({ envelope, message }: AnsweredMessage['reply'], transport: PreparedTransport): string {
  const isUdp = transport === 'udp';
  const bytes = isUdp ? Buffer.concat(toPackets(envelope, message)) : frame(envelope, message);
  return bytes.toString('latin1');
}

export class PreparedMessages {
  readonly #countLimited: ReturnType<Host['metrics']['counterOf']>;
  readonly #scratch = Buffer.alloc(MAX_REQUEST_BYTES);

  constructor(
    private readonly host: Host,
    private readonly site: SiteInfo,
  ) {
    this.#countLimited = host.metrics.counterOf(METRICS.udpLimited);
  }

  /**
   * Returns a prepared response of at most `maxBytes` and reports the hit, if the resolver would use the same entry.
   * For UDP, all packets but the last have the full length.
   */
  answer(received: Buffer, transport: PreparedTransport, maxBytes = Infinity): Buffer | undefined {
    const { clock, hits } = this.host;
    const preparedCache = this.host.preparedCache.current;
    const name = this.#nameOf(received, transport);
    if (name === undefined) return undefined;
    const prepared = preparedCache.find(name);
    if (prepared === undefined) return undefined;
    const answer = textWithin(maxBytes, prepared);
    if (answer === undefined || !preparedCache.use(prepared, clock.now())) return undefined;
    const startedAt = hits.startTimer();
    const bytes = this.#fill(answer, received);
    reportHit(this.host, answer, startedAt);
    if (answer.isTooLong && transport === 'udp') this.#countLimited({ reason: 'size' });
    return bytes;
  }

  /** Prepares the response to a request, if it was created from a fresh entry in memory. */
  prepareMessage(
    { received, transport, maxAnswerBytes }: RawRequest,
    request: Request,
    answered: AnsweredMessage,
  ): void {
    const { reply, handle, outcome, isTooLong } = answered;
    const { entry, responseCode: status } = outcome;
    // A message in the tunnel is a request of the public listener, which logs and bounds it.
    if (received === undefined || handle === undefined || entry === undefined || transport === 'tunnel')
      return;
    const name = isPreparableMessage(request) ? this.#nameOf(received, transport) : undefined;
    if (name === undefined) return;
    this.host.preparedCache.current.prepare(name, { handle, entry }, (start, known) => {
      const prepared = known ?? { ...start, whole: undefined, refusal: undefined };
      const place = isTooLong && maxAnswerBytes !== undefined ? 'refusal' : 'whole';
      if (prepared[place] !== undefined) return prepared;
      const text = textOfReply(reply, transport);
      prepared.bytes += text.length;
      prepared[place] = {
        family: `native-${transport}`,
        method: 'RESOLUTION',
        handle: handle.text,
        status,
        exists: entry.kind !== 'not-found',
        repeats: 0,
        text,
        isTooLong,
      };
      return prepared;
    });
  }

  /**
   * Returns the name of a request: its bytes, without site serial and expiration, and with the transport for the id.
   * Its zero bytes are in no request target. Undefined for a fragment, or an unsuitable length.
   */
  #nameOf(received: Buffer, transport: PreparedTransport): PreparedName<PreparedMessage> | undefined {
    const { length } = received;
    if (length < MIN_REQUEST_BYTES || length > MAX_REQUEST_BYTES) return undefined;
    if (received.readInt32BE(LENGTH_AT) !== length - ENVELOPE_BYTES) return undefined;
    const scratch = this.#scratch;
    received.copy(scratch);
    scratch.writeInt32BE(TRANSPORTS.indexOf(transport), REQUEST_ID_AT);
    scratch.writeInt16BE(0, SITE_SERIAL_AT);
    scratch.writeInt32BE(0, EXPIRATION_AT);
    return scratch.toString('latin1', 0, length) as PreparedName<PreparedMessage>;
  }

  #fill({ text, family }: PreparedText, received: Buffer): Buffer {
    const bytes = Buffer.allocUnsafe(text.length);
    bytes.write(text, 'latin1');
    const step = family === 'native-udp' ? FULL_PACKET_BYTES : text.length;
    const requestId = received.readInt32BE(REQUEST_ID_AT);
    for (let at = 0; at < text.length; at += step) bytes.writeInt32BE(requestId, at + REQUEST_ID_AT);
    bytes.writeUInt16BE(this.site.serial, SITE_SERIAL_AT);
    bytes.writeInt32BE(expirationAt(this.host.clock.wall()), EXPIRATION_AT);
    return bytes;
  }
}
