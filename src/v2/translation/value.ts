// Types of a handle value in ePIC v2: as a response shows it, and as a request states it.
import { upperAscii } from '../../handle/handle.js';
import type { HandleValue, Ttl, ValueReference } from '../../handle/value.js';

/** Parsed form of HS_ADMIN data. */
export interface V2Admin {
  adminId: string;
  adminIdIndex: number;
  perms: Record<string, boolean>;
}

/** Parsed form of HS_VLIST data. */
export type V2Members = { idx: number; handle: string }[];

/** Null for bytes that are not text. */
export type ParsedData = string | V2Admin | V2Members | null;

/** A value in a response; `data` is base64 on one line, `ttl` an ISO date when `ttl_type` is 1. */
export interface V2Value {
  idx: number;
  type: string;
  parsed_data: ParsedData;
  data: string;
  timestamp?: string;
  ttl_type: 0 | 1;
  ttl: Ttl;
  refs: string[];
  privs: string;
}

/** A validated value of a request. A value without `idx` gets a free index. */
export interface V2Input {
  idx?: number;
  type: string;
  data: Buffer;
  ttl: Ttl;
  references: ValueReference[];
  /** Four digits: admin read, admin write, public read, public write. */
  permissions: string;
}

/** Compared case-sensitively, as in the original service. */
export const ADMIN_TYPE = 'HS_ADMIN';

export const MEMBERS_TYPE = 'HS_VLIST';

/** Secret keys never appear in a response. The Handle server matches their type in any case. */
export function isHidden({ type }: Pick<HandleValue, 'type'>): boolean {
  return /^HS_SECKEY(\.|$)/.test(upperAscii(type));
}
