// `data` and `parsed_data`: the two forms in which v2 has the bytes of a value.
import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { decodeVlist, encodeVlist } from '../handle/admin-data.js';
import { decodeOrNothing } from '../handle/bytes-codec.js';
import { adminFormToBytes, showAdminForm } from './admin-form.js';
import { type Refuse, firstComplaint } from './bad-body.js';
import { manyOf, storableText, wholeNumber } from './fields.js';
import { ADMIN_TYPE, MEMBERS_TYPE, type ParsedData, type V2Members } from './value.js';

interface Content {
  type: string;
  data?: string | undefined;
  parsed?: unknown;
  refuseData: Refuse;
  refuseParsed: Refuse;
}

/** The bytes of a value of a request, whichever of the two forms it has. */
export function readContent({ type, data, parsed, refuseData, refuseParsed }: Content): Buffer {
  const bytes = data === undefined ? undefined : readData(type, data, refuseData);
  // GET shows null where there is no parsed form, and what GET shows can be sent back.
  if (parsed === undefined || parsed === null) {
    if (bytes === undefined) throw refuseParsed('give it, or data');
    return bytes;
  }
  const parsedBytes = bytesOfParsed(type, parsed, refuseParsed);
  if (bytes === undefined) return parsedBytes;
  if (!isSameContent(type, bytes, parsedBytes)) {
    throw refuseParsed('data says something else; give only one of the two, or both for the same');
  }
  return bytes;
}

/** Different bytes can mean the same: HS_ADMIN has an older, longer form. */
const isSameContent = (type: string, one: Buffer, other: Buffer): boolean => {
  if (one.equals(other)) return true;
  const shown = parsedData(type, one);
  return shown !== null && isDeepStrictEqual(shown, parsedData(type, other));
};

/** Canonical base64 is bytes, anything else is a text: MyCoRe sends its URLs so. A structure is never a text. */
function readData(type: string, data: string, refuse: Refuse): Buffer {
  const bytes = decodeCanonical(data);
  if (bytes !== undefined) return bytes;
  if (type === ADMIN_TYPE || type === MEMBERS_TYPE) throw refuse('give base64, or parsed_data');
  return textToBytes(data, refuse);
}

/** As the original breaks lines: after each 60 characters. */
const WRAPPED = /^(?:[^\r\n]{60}\r?\n)+[^\r\n]{0,60}$/;

/** Padded, with unused bits of zero (RFC 4648 §3.5): bytes have one such text, which comes back when it is encoded again. */
function decodeCanonical(data: string): Buffer | undefined {
  const digits = WRAPPED.test(data) ? data.replace(/[\r\n]/g, '') : data;
  const bytes = Buffer.from(digits, 'base64');
  return bytes.toString('base64') === digits ? bytes : undefined;
}

function bytesOfParsed(type: string, parsed: unknown, refuse: Refuse): Buffer {
  if (type === ADMIN_TYPE) return adminFormToBytes(parsed, refuse);
  if (type === MEMBERS_TYPE) return encodeVlist(readMembers(parsed, refuse));
  // The original stores objects as the text of a Ruby object, which nobody can mean.
  if (typeof parsed !== 'string' && typeof parsed !== 'number' && typeof parsed !== 'boolean') {
    throw refuse('give a text, a number, true or false');
  }
  return textToBytes(String(parsed), refuse);
}

function textToBytes(given: string, refuse: Refuse): Buffer {
  const text = storableText.safeParse(given);
  if (!text.success) throw refuse(firstComplaint(text.error));
  return Buffer.from(text.data, 'utf8');
}

const members = manyOf(
  z.object({ idx: wholeNumber(), handle: storableText }, { error: 'give an object of idx and handle' }),
  'give an array of objects with idx and handle',
);

function readMembers(parsed: unknown, refuse: Refuse) {
  const read = members.safeParse(parsed);
  if (!read.success) throw refuse(firstComplaint(read.error));
  return read.data.map(({ idx, handle }) => ({ handle, index: idx }));
}

/** What v2 shows as `parsed_data` for these bytes. */
export function parsedData(type: string, bytes: Buffer): ParsedData {
  if (type === ADMIN_TYPE) return decodeOrNothing(showAdminForm, bytes) ?? null;
  if (type === MEMBERS_TYPE) return decodeOrNothing(showMembers, bytes) ?? null;
  return isShowable(bytes) ? bytes.toString('utf8') : null;
}

const showMembers = (bytes: Buffer): V2Members =>
  decodeVlist(bytes).map(({ handle, index }) => ({ idx: index, handle }));

/** Of the control bytes only tab, line feed and carriage return are shown as text. */
export function isShowable(bytes: Buffer): boolean {
  const isControl = (byte: number): boolean =>
    (byte < 32 && byte !== 9 && byte !== 10 && byte !== 13) || byte === 0x7f;
  return isUtf8(bytes) && !bytes.some(isControl);
}
