// The configuration keys of each kind of server, for the remedies that an operator reads.

export interface ServerKeys {
  /** The key of its address. */
  url: string;
  schemes: string;
  /** How to trust the authority of its certificate. */
  trust: string;
  /** The key that pins its certificate. */
  pin?: string;
}

/** Of the server that is configured under a key such as `upstream`, or of one of its mirrors. */
export function keysAt(server: { key: string; url: string }, url: string): ServerKeys {
  const { key } = server;
  return {
    url: url === server.url ? `${key}.url` : `${key}.mirrors`,
    schemes: 'http or https',
    trust: `set ${key}.caFile or ${key}.fingerprint`,
    pin: `${key}.fingerprint`,
  };
}

const PUBLIC_TRUST = {
  schemes: 'http or https',
  trust: 'name the PEM file of its authority in the variable NODE_EXTRA_CA_CERTS',
};

export const ROOT_KEYS: ServerKeys = { ...PUBLIC_TRUST, url: 'upstream.referralRoot' };

export const REVERSE_LOOKUP_KEYS: ServerKeys = { ...PUBLIC_TRUST, url: 'reverseLookup.url' };

/** Fills `{url}`, `{schemes}`, `{trust}`, `{pin}` and `{orPin}`. */
export const withKeys = (remedy: string, { url, schemes, trust, pin = '' }: ServerKeys): string =>
  remedy
    .replace('{url}', url)
    .replace('{schemes}', schemes)
    .replace('{trust}', trust)
    .replace('{pin}', pin)
    .replace('{orPin}', pin && `, or set ${pin}`);
