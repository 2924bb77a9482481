// The envelope: 20 bytes before a message on TCP and HTTP, before every packet of a message on UDP (RFC 3652 §2.1.2).

export const ENVELOPE_BYTES = 20;
/** Of the message after the envelope; clients read no longer one (hdllib Common.MAX_MESSAGE_LENGTH). */
export const MAX_MESSAGE_BYTES = 262_144;
/** Header without body: a server refuses a shorter message. */
export const MIN_MESSAGE_BYTES = 24;

export interface Version {
  major: number;
  minor: number;
}

export const OWN_VERSION: Version = { major: 2, minor: 11 };

export interface Envelope {
  version: Version;
  /** The highest version that the sender reads; major 0: the version of this message. */
  suggested: Version;
  isCompressed: boolean;
  isEncrypted: boolean;
  /** One packet of several. */
  isTruncated: boolean;
  /** 0: none. */
  sessionId: number;
  requestId: number;
  /** Of the packet, from 0. */
  sequence: number;
  /** Length of the whole message, before it is cut into packets. */
  length: number;
}

const COMPRESSED = 0x80;
const ENCRYPTED = 0x40;
const TRUNCATED = 0x20;
/** The suggested major version has the lowest bits; the others are idle. */
const MAJOR = 0x03;

/** The bytes must be at least ENVELOPE_BYTES. */
export function decodeEnvelope(bytes: Buffer): Envelope {
  const bits = bytes.readUInt8(2);
  return {
    version: { major: bytes.readUInt8(0), minor: bytes.readUInt8(1) },
    suggested: { major: bits & MAJOR, minor: bytes.readUInt8(3) },
    isCompressed: (bits & COMPRESSED) !== 0,
    isEncrypted: (bits & ENCRYPTED) !== 0,
    isTruncated: (bits & TRUNCATED) !== 0,
    sessionId: bytes.readInt32BE(4),
    requestId: bytes.readInt32BE(8),
    sequence: bytes.readInt32BE(12),
    length: bytes.readInt32BE(16),
  };
}

export function encodeEnvelope(envelope: Envelope): Buffer {
  const { version, suggested, isCompressed, isEncrypted, isTruncated } = envelope;
  const bits =
    (isCompressed ? COMPRESSED : 0) |
    (isEncrypted ? ENCRYPTED : 0) |
    (isTruncated ? TRUNCATED : 0) |
    (suggested.major & MAJOR);
  const bytes = Buffer.alloc(ENVELOPE_BYTES);
  bytes.set([version.major, version.minor, bits, suggested.minor]);
  bytes.writeInt32BE(envelope.sessionId, 4);
  bytes.writeInt32BE(envelope.requestId, 8);
  bytes.writeInt32BE(envelope.sequence, 12);
  bytes.writeInt32BE(envelope.length, 16);
  return bytes;
}

const rankOf = ({ major, minor }: Version): number => major * 256 + minor;

/** The version of an answer: the suggested one, but not above our own. No version is refused. */
export function negotiateVersion({ version, suggested }: Pick<Envelope, 'version' | 'suggested'>): Version {
  if (suggested.major === 0) return version;
  return rankOf(suggested) > rankOf(OWN_VERSION) ? OWN_VERSION : suggested;
}

/** Whether a message of this version is older than 2.`minor`. Old clients write 5.0 for 2.0. */
export const isBefore = (version: Version, minor: number): boolean =>
  rankOf(version) < rankOf({ major: 2, minor }) || (version.major === 5 && version.minor === 0);
