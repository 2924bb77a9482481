// Responds to withdrawn handles with 410, and says what they were and since when they are withdrawn.
import { ServiceError } from '../../errors.js';
import { upperAscii } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { shorten } from '../../html/html.js';
import type { Host } from '../../host.js';
import type { Started } from '../../plugin.js';
import type { RedirectRequest, StartedRequest } from '../../redirect/extension.js';
import { plainTarget } from '../../redirect/target.js';
import { hasFamily, isOfType, textOf } from '../../redirect/values.js';
import { ERRORS, type TombstonesConfig } from './plugin.js';

/** Maximum length of the text on a page; the record has the whole value. */
const MAX_CHARS = 2000;

export function start(_host: Host, { tombstones }: TombstonesConfig): Started {
  const type = upperAscii(tombstones.type ?? '');
  return { redirect: () => ({ types: [type], startRequest: (request) => startTombstone(request, type) }) };
}

/** Leaves the record page, and requests for some values, as they are. */
function startTombstone({ query, values, res }: RedirectRequest, type: string): StartedRequest {
  const tombstone = values.find((value) => isOfType(value, type));
  if (tombstone === undefined || query.show !== 'redirect' || query.isSelected || leadsOn(values)) return {};
  res.setHeader('X-Robots-Tag', 'noindex');
  const detail = describeTombstone(tombstone);
  return {
    failure: new ServiceError(ERRORS.REDIRECT_WITHDRAWN, { detail: detail === '' ? undefined : detail }),
  };
}

const leadsOn = (values: readonly HandleValue[]): boolean =>
  plainTarget(values).chosen !== undefined || hasFamily(values, '10320/LOC');

/** The timestamp of a value is the time of its last change, which for a tombstone is the withdrawal. */
function describeTombstone(value: HandleValue): string {
  const { timestamp } = value;
  const shown = shorten((textOf(value) ?? '').trim(), MAX_CHARS);
  const [date] = /^\d{4}-\d\d-\d\d(?=T)/.exec(typeof timestamp === 'string' ? timestamp : '') ?? [];
  const parts = [shown, date === undefined ? '' : `Withdrawn since ${date}.`];
  return parts.filter((part) => part !== '').join(' – ');
}
