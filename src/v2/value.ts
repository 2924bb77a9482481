// One value of a record as ePIC v2 writes it, and as a request is understood.
import { upperAscii } from '../handle/handle.js';
import type { HandleValue, Ttl, ValueReference } from '../handle/value.js';

/** The parsed form of HS_ADMIN data. */
export interface V2Admin {
  adminId: string;
  adminIdIndex: number;
  perms: Record<string, boolean>;
}

/** The parsed form of HS_VLIST data. */
export type V2Members = { idx: number; handle: string }[];

/** Data in the form their type has in v2; null when there is none. */
export type ParsedData = string | V2Admin | V2Members | null;

/** A value as GET shows it; `data` is base64 on one line, `ttl` an ISO date when `ttl_type` is 1. */
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

/** A value of a request, checked, all its forms read. Without `idx` one is to be assigned. */
export interface V2Input {
  idx?: number;
  type: string;
  data: Buffer;
  ttl: Ttl;
  references: ValueReference[];
  /** Four digits: admin read, admin write, public read, public write. */
  permissions: string;
}

/** The type whose values say who may change the record. The original compares it exactly. */
export const ADMIN_TYPE = 'HS_ADMIN';

export const MEMBERS_TYPE = 'HS_VLIST';

/** Secret keys are never shown, in whatever case a server takes their type. */
export function isHidden({ type }: Pick<HandleValue, 'type'>): boolean {
  return /^HS_SECKEY(\.|$)/.test(upperAscii(type));
}
