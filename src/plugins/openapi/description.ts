// The responses of a document: its JSON, and its page with the forms.
import { VERSION } from '../../config/package-files.js';
import type { SitePage } from '../../html/html.js';
import type { Route } from '../../http/route-table.js';
import { type OpenApiFile, servedDocument } from './document.js';
import { documentPage, tryUrl } from './page.js';

export interface Description {
  text: string;
  page: SitePage;
  /** Returns the URL that a form of the page calls; undefined for an unknown operation. */
  tryUrl: (given: URLSearchParams) => string | undefined;
}

export async function describePublic(title: string, routes: readonly Route[]): Promise<Description> {
  const { default: file } = await import('../../../config/openapi/public.yaml');
  return describe(file as OpenApiFile, title, routes);
}

export async function describeAdmin(title: string): Promise<Description> {
  const { default: file } = await import('../../../config/openapi/admin.yaml');
  return describe(file as OpenApiFile, title);
}

function describe(file: OpenApiFile, title: string, routes?: readonly Route[]): Description {
  const document = servedDocument(file, { title, version: VERSION }, routes);
  return {
    text: JSON.stringify(document),
    page: documentPage(document),
    tryUrl: (given) => tryUrl(document, given),
  };
}
