// Follows HS_ALIAS values from handle to handle, as far as that leads anywhere.
import { ServiceError } from '../errors.js';
import type { FromEntry, Resolution } from '../resolver/resolution.js';
import { isOfType, textOf, valuesOf } from './values.js';

/** HDLProxy's bound. */
const MAX_HOPS = 20;

export interface Stop {
  handle: string;
  resolution: Resolution;
}

export interface Followed {
  /** Where the way ends: a record, a refusal, or a handle that does not exist. */
  end: Stop;
  /** The aliases on the way, in their order; empty when the first record is none. */
  aliases: string[];
  /** The answer among all on the way whose life ends first: no conclusion lives longer. */
  shortest: FromEntry | undefined;
}

/** @throws ServiceError REDIRECT_ALIAS_LOOP when aliases lead round in a circle, or too far */
export async function followAliases(
  first: Stop,
  { resolve, keyOf }: { resolve: (handle: string) => Promise<Resolution>; keyOf: (handle: string) => string },
): Promise<Followed> {
  const aliases: string[] = [];
  const seen = new Set([keyOf(first.handle)]);
  let end = first;
  let shortest = earlier(undefined, first.resolution);
  for (let next = aliasIn(end); next !== undefined; next = aliasIn(end)) {
    aliases.push(end.handle);
    if (aliases.length > MAX_HOPS || seen.has(keyOf(next))) throw new ServiceError('REDIRECT_ALIAS_LOOP');
    seen.add(keyOf(next));
    end = { handle: next, resolution: await resolve(next) };
    shortest = earlier(shortest, end.resolution);
  }
  return { end, aliases, shortest };
}

function aliasIn({ resolution }: Stop): string | undefined {
  if (resolution.kind !== 'entry') return undefined;
  const alias = valuesOf(resolution.entry).find((value) => isOfType(value, 'HS_ALIAS'));
  const text = alias && textOf(alias)?.trim();
  // As UTF-8 has it, which is what the Handle server will read.
  return text === undefined || text === '' ? undefined : Buffer.from(text).toString();
}

function earlier(kept: FromEntry | undefined, resolution: Resolution): FromEntry | undefined {
  if (resolution.kind !== 'entry') return kept;
  return kept === undefined || resolution.entry.staleAt < kept.entry.staleAt ? resolution : kept;
}
