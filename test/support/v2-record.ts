// A record's values in the formats of both interfaces.

export const STAMP = '2026-11-21T09:00:00Z';

/** A value in the record interface's format. */
export const URL_VALUE = {
  index: 1,
  type: 'URL',
  data: { format: 'string', value: 'https://example.org/one' },
  ttl: 86400,
  timestamp: STAMP,
};

export const ADMIN_VALUE = {
  index: 100,
  type: 'HS_ADMIN',
  data: { format: 'admin', value: { handle: '0.NA/21.T11998', index: 200, permissions: '011111110011' } },
  ttl: 86400,
  timestamp: '2026-11-20T09:00:00Z',
};

export const SECRET_VALUE = {
  index: 300,
  type: 'HS_SECKEY',
  data: { format: 'string', value: 'hidden' },
  permissions: '1100',
  ttl: 86400,
  timestamp: STAMP,
};

/** Returns the value as sent to the server, which sets timestamps itself. */
export function withoutStamp<T extends { timestamp: string }>(value: T): Omit<T, 'timestamp'> {
  const rest: Omit<T, 'timestamp'> & Partial<T> = { ...value };
  delete rest.timestamp;
  return rest;
}

/** URL_VALUE as a v2 client sends it. */
export const URL_INPUT = { type: 'URL', parsed_data: 'https://example.org/one' };

export const RECORD = [ADMIN_VALUE, URL_VALUE];
