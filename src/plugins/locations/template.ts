// Builds a location's address from `href` or `href_template`.
import type { Attributes } from './location-list.js';

/** Maximum address length. Clients and proxies reject longer headers. */
const MAX_FILLED_CHARS = 8000;

/** Encoded handles, computed once per request because a list may hold thousands of templates. */
export interface TemplateForms {
  /** Value of `{hdl}`, encoded as one URL component. */
  component: string;
  /** Value of `{hdl:path}`, which keeps characters that are valid in a path. */
  path: string;
}

export const templateForms = (handle: string): TemplateForms => ({
  component: encodeComponent(handle),
  path: encodePath(handle),
});

/** An `href` is used verbatim and takes precedence, even if empty (recordings "template: …"). */
export function hrefOf(attributes: Attributes, forms: TemplateForms): string | undefined {
  return attributes.get('href') ?? fillTemplate(attributes.get('href_template'), forms);
}

/** Replaces `{hdl}` and `{hdl:path}` only; undefined if repetitions of a long handle are too long. */
export function fillTemplate(
  template: string | undefined,
  { component, path }: TemplateForms,
): string | undefined {
  if (template === undefined || template.length > MAX_FILLED_CHARS) return undefined;
  if (!template.includes('{hdl')) return template;
  const longest = template.split('{hdl').length * Math.max(component.length, path.length);
  if (template.length + longest > 2 * MAX_FILLED_CHARS) return undefined;
  const filled = template.replace(/\{hdl(:path)?\}/g, (_whole, isPath) => (isPath ? path : component));
  return filled.length > MAX_FILLED_CHARS ? undefined : filled;
}

export const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** Encodes like Java's URLEncoder, which escapes all punctuation but `*-._`, but a space as `%20`. */
const encodeComponent = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(/[!'()~]/g, percent);

/** Leaves `/ ~ ! * ( ) : @ $ = ; ,` unescaped. */
const encodePath = (text: string): string => encodeURI(text.toWellFormed()).replace(/[?#&+']/g, percent);
