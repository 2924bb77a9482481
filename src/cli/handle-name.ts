// A handle as people give it: bare, as a URI (`hdl:…`), or as the URL of a public resolver.
import { handleInUrl } from '../handle/handle-in-url.js';
import { parseHandle } from '../handle/handle.js';

/** No handle of a public resolver begins with it: `api` is no prefix. */
const API_PATH = /^api\/handles\//i;

/** A URL is percent-encoded and may have a query. Any other form holds the handle as text. */
export function readHandleName(text: string): string {
  const name = handleInUrl(text);
  if (!/^\s*https?:/i.test(text)) return name;
  const [path = ''] = name.replace(API_PATH, '').split(/[?#]/, 1);
  const parsed = parseHandle(Buffer.from(path).toString('latin1'));
  return parsed.ok ? parsed.handle : path;
}
