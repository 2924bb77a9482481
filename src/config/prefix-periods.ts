// Periods that differ by prefix: one duration for all handles, or a mapping of prefixes with a default.
import { z } from 'zod';
import { upperAscii } from '../handle/handle.js';
import { parseDuration } from './fields.js';

/** The period of the handles that match one of the prefixes (`21.T1`, `21.T1.*` or `*`, in capitals). */
export interface PrefixPeriod {
  prefixes: readonly [string];
  ms: number;
}

/** `forever`: finite, so that it can be sent to Redis as an expiry. */
const FOREVER_MS = 36_500 * 86_400_000;
const MAX_MS = 365 * 86_400_000;

const DEFAULT = 'default';

const PERIOD = 'a duration from 0s to 365d with its unit (ms, s, m, h, d), or forever';
const ERROR = `give ${PERIOD}; or a mapping such as {default: 24h, 21.T1: forever} of prefixes (21.T1, 21.T1.* for those derived from it) with a default`;

/** `21.T1`, `21.T1.*` or `*`, in capitals: the ASCII case of a prefix has no meaning. */
export function readPrefixPattern(given: string): string | undefined {
  const isPattern = given === '*' || /^[^\s/*.]+(?:\.[^\s/*.]+)*(?:\.\*)?$/.test(given);
  return isPattern ? upperAscii(given) : undefined;
}

/** One duration, `forever`, or a mapping of prefixes to these. A variable has the mapping as JSON or YAML. */
export const prefixPeriods = (byDefault: string) =>
  z
    .union([z.string(), z.record(z.string(), z.string())], { error: ERROR })
    .transform((given, context) => {
      const periods = readPeriods(typeof given === 'string' ? { [DEFAULT]: given } : given);
      if (periods !== undefined) return periods;
      context.addIssue({ code: 'custom', message: ERROR });
      return z.NEVER;
    })
    .prefault(byDefault)
    .meta({ structured: true });

/** Undefined without a default, for a prefix that is given twice, and for an invalid prefix or period. */
function readPeriods(given: Readonly<Record<string, string>>): PrefixPeriod[] | undefined {
  const periods: PrefixPeriod[] = [];
  for (const [name, text] of Object.entries(given)) {
    const pattern = name === DEFAULT ? '*' : readPrefixPattern(name);
    const ms = readPeriod(text);
    if (pattern === undefined || ms === undefined) return undefined;
    if (periods.some(({ prefixes }) => prefixes[0] === pattern)) return undefined;
    periods.push({ prefixes: [pattern], ms });
  }
  return periods.some(({ prefixes }) => prefixes[0] === '*') ? periods : undefined;
}

function readPeriod(text: string): number | undefined {
  if (text === 'forever') return FOREVER_MS;
  const ms = parseDuration(text);
  return ms === undefined || ms > MAX_MS ? undefined : ms;
}
