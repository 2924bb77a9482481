// Finds the redirect target of a record by its URL values, and makes any target a URL. Pure.
import { ServiceError } from '../errors.js';
import type { HandleValue } from '../handle/value.js';
import { type ChosenTarget, type FoundTarget, NO_VARIATION, type RedirectTarget } from './extension.js';
import { type UrlRules, appendToUrl, toRedirectUrl } from './redirect-url.js';
import type { RedirectQuery } from './request.js';
import { isFamily, isOfType, isUrlSubtype, textOf } from './values.js';

/** Returns the target of a record by its URL values alone. */
export const plainTarget = (values: readonly HandleValue[]): FoundTarget => ({
  // A value of type 0.TYPE/URL alone is no target (recording "legacy: 0.TYPE/URL alone").
  chosen: values.some((value) => isFamily(value, 'URL')) ? firstUrl(values) : undefined,
  status: 302,
  isRandom: false,
  variation: NO_VARIATION,
  headers: [],
});

/** Returns the first URL value in record order, or else the first URL subtype. */
export function firstUrl(values: readonly HandleValue[]): ChosenTarget | undefined {
  const isUsable = (value: HandleValue): boolean => (textOf(value) ?? '').trim() !== '';
  const value =
    values.find((each) => isOfType(each, 'URL', '0.TYPE/URL') && isUsable(each)) ??
    values.find((each) => isUrlSubtype(each) && isUsable(each));
  return value && { text: textOf(value) ?? '', value };
}

/**
 * Appends `urlappend` to the target and makes it a URL.
 *
 * @throws ServiceError BAD_PARAMETER if `urlappend` changes the host
 */
export function completeTarget(
  { chosen, ...target }: FoundTarget,
  { urlAppend }: RedirectQuery,
  rules: UrlRules,
): RedirectTarget {
  if (chosen === undefined) return { ...target, chosen, url: undefined };
  const text = appendToUrl(chosen.text, urlAppend);
  if (text === undefined)
    throw new ServiceError('BAD_PARAMETER', { detail: 'urlappend changes the host of the URL' });
  return { ...target, chosen: { ...chosen, text }, url: toRedirectUrl(text, rules) };
}
