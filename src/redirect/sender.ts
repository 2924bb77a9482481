// Sends the responses of the redirect interface, as pages if a plugin renders them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { securityHeaders } from '../html/layout.js';
import { HTML_TYPE, type TextResponse, type TextSender, createTextSender } from '../html/send.js';
import type { Pages } from './extension.js';

type HtmlResponse = Omit<TextResponse, 'contentType' | 'text'> & { html: string };

export interface RedirectSender extends TextSender {
  /** Undefined if no plugin renders pages; responses are then JSON. */
  pages: Pages | undefined;
  securityHeaders: Readonly<Record<string, string>>;
  /** Sends a page with the security headers. */
  sendHtml: (req: IncomingMessage, res: ServerResponse, response: HtmlResponse) => Promise<void>;
}

export function createSender(pages: Pages | undefined, gzipMinBytes: number): RedirectSender {
  const sender = createTextSender(gzipMinBytes);
  const always = pages?.securityHeaders ?? securityHeaders({});
  return {
    ...sender,
    pages,
    securityHeaders: always,
    sendHtml: (req, res, { html, headers, ...response }) =>
      sender.sendText(req, res, {
        ...response,
        contentType: HTML_TYPE,
        text: html,
        headers: { ...always, ...headers },
      }),
  };
}
