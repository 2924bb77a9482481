// Keys by group. The keys of a group in Redis share a hash tag, so that one script may touch all of them.

export const GROUPS = 1024;

/** FNV-1a over UTF-16 units, 32 bits: spreads keys evenly, and is the same in every process. */
export function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

export const groupOf = (key: string): number => hashOf(key) % GROUPS;
