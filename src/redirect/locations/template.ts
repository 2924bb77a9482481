// The address of a location: `href`, or `href_template` with the handle filled in.

/** Clients and proxies do not accept longer headers. */
const MAX_FILLED_CHARS = 8000;

/** A handle as templates name it; made once for a request, because a list may hold thousands of templates. */
export interface TemplateForms {
  /** `{hdl}`: as one component of a URL. */
  component: string;
  /** `{hdl:path}`: keeps what a path may hold. */
  path: string;
}

export const templateForms = (handle: string): TemplateForms => ({
  component: encodeComponent(handle),
  path: encodePath(handle),
});

/**
 * Undefined for a location without an address. An `href` is never filled in, and wins also when it is empty (recordings
 * "template: …").
 */
export function hrefOf(attributes: ReadonlyMap<string, string>, forms: TemplateForms): string | undefined {
  return attributes.get('href') ?? fillTemplate(attributes.get('href_template'), forms);
}

/** Others stay as they are. A template may repeat a long handle: undefined when that becomes too long. */
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

/** Lone surrogates become U+FFFD. */
export const wellFormed = (text: string): string => Buffer.from(text).toString();

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** Java's form encoding without `+`: of the marks only `*`, `-`, `.` and `_` stay. */
const encodeComponent = (text: string): string =>
  encodeURIComponent(wellFormed(text)).replace(/[!'()~]/g, percent);

/** Keeps `/ ~ ! * ( ) : @ $ = ; ,`. */
const encodePath = (text: string): string => encodeURI(wellFormed(text)).replace(/[?#&+']/g, percent);
