// Renders the pages of the redirect interface with the name, logo and colour of the service.
import { tryDecode } from '../../handle/bytes.js';
import type { Started } from '../../plugin.js';
import type { Config } from '../../config/schema.js';
import { handleToPath, hasPrefix } from '../../handle/handle.js';
import {
  type Html,
  type PageBranding,
  type SitePage,
  brandingOf,
  createPageLayout,
  html,
  shorten,
} from '../../html/html.js';
import { type Problem, problemOf } from '../../http/error-reply.js';
import type { Pages, ProblemView } from '../../redirect/extension.js';
import { recordPage } from './record-page.js';

export const start = (): Started => ({ redirect: (settings) => ({ pages: createPages(settings) }) });

function createPages(config: Config): Pages {
  const branding = brandingOf(config);
  const { renderPage, securityHeaders } = createPageLayout(branding);
  return {
    securityHeaders,
    front: renderPage(frontPage(branding)),
    problem: (view) => renderPage(problemPage({ ...view, branding })),
    record: (view) => recordPage(view, renderPage),
  };
}

const lookUpForm = ({ examplePrefix: prefix }: PageBranding, handle = ''): Html =>
  html`<form action="/" method="get" role="search">
    <label for="hdl">Handle</label>
    <input
      id="hdl"
      name="hdl"
      value="${handle}"
      placeholder="${prefix === undefined ? 'prefix/suffix' : `${prefix}/abc`}"
      dir="ltr"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      required
      maxlength="2048"
    />
    <button class="button main">Open</button>
    <button class="button" name="noredirect">Show the record</button>
  </form>`;

const frontPage = (branding: PageBranding): SitePage => ({
  title: 'Look up a handle',
  main: html`<h1>Look up a handle</h1>
    <section>
      ${lookUpForm(branding)}
      <p class="quiet">With or without <code>hdl:</code>, <code>doi:</code> or the URL of a resolver.</p>
    </section>`,
});

const GLOBAL_RESOLVER = 'https://hdl.handle.net/';

/** Maximum displayed length of a message of a Handle server. */
const MAX_DETAIL_CHARS = 2000;

/** Renders the page of an error: what happened, what the reader can do, and the lookup form. */
function problemPage({
  failure,
  handle: asked,
  requestId,
  retryUrl,
  branding,
  contact,
}: ProblemView & { branding: PageBranding }): SitePage {
  const problem = problemOf(failure, asked);
  const { status, title, detail, code, handle } = problem;
  const event = eventOf(problem);
  const heading = event === undefined ? title : 'This identifier cannot be looked up right now';
  const reference = html`. Reference: <code>${requestId}</code>, by which the operator finds this request in
    the log`;
  return {
    title: heading,
    main: html`<h1><span class="kind">${status}</span> ${heading}</h1>
      ${event === undefined ? undefined : html`<p>${event}; try again ${retryTime(failure)}.</p>`}
      ${detail === undefined ? undefined : html`<p class="note bad"><bdi dir="ltr">${shorten(detail, MAX_DETAIL_CHARS)}</bdi></p>`}
      ${renderSteps([
        ...stepsAfter(problem, retryUrl),
        ...prefixContactSteps(contact),
        ...contactSteps(branding),
      ])}
      <section>${lookUpForm(branding, handle)}</section>
      <p class="quiet">
        Error:
        ${event === undefined ? undefined : `${title}, `}<code>${code}</code>${
          requestId === undefined ? undefined : reference
        }.
      </p>`,
  };
}

/** Statuses after which a retry may succeed. */
const TEMPORARY: readonly number[] = [408, 429, 500, 502, 503, 504];

const NO_RESPONSE = 'The server that holds it does not respond';
const SERVER_ERROR = 'The server that holds it reports an error';

/** Causes for which a lookup fails at the moment, by error code. */
const EVENTS: Readonly<Record<string, string>> = {
  UPSTREAM_UNREACHABLE: NO_RESPONSE,
  UPSTREAM_CONNECT_FAILED: NO_RESPONSE,
  UPSTREAM_BACKOFF: NO_RESPONSE,
  UPSTREAM_TIMEOUT: NO_RESPONSE,
  UPSTREAM_INVALID_RESPONSE: SERVER_ERROR,
  UPSTREAM_FAILED: SERVER_ERROR,
  UPSTREAM_BUSY: 'The server that holds it is busy',
  OVERLOADED: 'This service is busy',
  INTERNAL: 'This service has failed',
  RATE_LIMITED: 'Too many requests come from your network',
};

const eventOf = ({ code, status }: Problem): string | undefined =>
  TEMPORARY.includes(status) ? EVENTS[code] : undefined;

/** A minute or more, because a reader who waits for seconds meets the same error. */
function retryTime({ retryAfterSeconds = 0 }: ProblemView['failure']): string {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  return minutes > 1 ? `in ${minutes} minutes` : 'in a minute';
}

/** Remedies for errors that a retry repeats, by error code. */
const ADVICE: Readonly<Record<string, string>> = {
  BAD_PATH: 'Check the link: two hexadecimal digits follow each %, and %25 means the percent sign.',
  HANDLE_TOO_LONG: 'Check whether the link contains text that does not belong to the handle.',
  EMPTY_HANDLE: 'Enter a handle below.',
  LOOP_DETECTED: 'Tell the operator of this service, who can correct its configuration.',
};

function stepsAfter(problem: Problem, retryUrl: string): Html[] {
  const { status, code, handle = '' } = problem;
  if (code === 'REDIRECT_NOT_SERVED' || code === 'NOT_RESPONSIBLE') return findSteps(handle);
  if (code === 'REDIRECT_NOT_FOUND') return findSteps(handle, hasPrefix(handle) ? SPELLING : FORM);
  if (code === 'REDIRECT_ALIAS_LOOP') {
    const url = `/${handleToPath(handle)}?noredirect&ignore_aliases`;
    return [html`<a href="${url}" rel="nofollow">Show the record</a>, whose owner can correct the alias.`];
  }
  if (ADVICE[code] !== undefined) return [html`${ADVICE[code]}`];
  if (code === 'REDIRECT_WITHDRAWN')
    return [
      html`<a class="button" href="/${handleToPath(handle)}?noredirect" rel="nofollow">Show the record</a>`,
    ];
  return TEMPORARY.includes(status) ? [html`<a class="button main" href="${retryUrl}">Try again</a>`] : [];
}

const SPELLING = html`Check the handle for typing errors: every character counts.`;
const FORM = html`Check the address: a handle is a prefix, a slash and a suffix, such as 10.5072/abc.`;

/** Suggests the handle that is probably meant, or else gives the advice, and links to the global resolver. */
function findSteps(handle: string, advice?: Html): Html[] {
  const meant = suggestHandle(handle);
  const hint =
    meant === undefined
      ? advice
      : html`Did you mean <a href="/${handleToPath(meant)}"><bdi dir="ltr">${meant}</bdi></a
          >?`;
  const steps = hint === undefined ? [] : [hint];
  const name = meant ?? handle;
  if (advice !== undefined && !hasPrefix(name)) return steps;
  const url = GLOBAL_RESOLVER + handleToPath(name);
  const global = html`Ask the global resolver, which knows every prefix:
    <a href="${url}" rel="noreferrer nofollow"><bdi dir="ltr">${url}</bdi></a>`;
  return [...steps, global];
}

/** Matches a handle after one of these words, or else a handle whose prefix contains a dot. */
const HANDLE_IN_TEXT = /(?:^|[^\w.-])(?:(?:doi|hdl|handle)[\s:/]+(\d[\w.]*\/.+)|(\d+(?:\.\w+)+\/.+))/is;

/**
 * Returns the handle that a copied text probably means, without what is around it; undefined if it is the text.
 * @example suggestHandle('DOI 10.5072/abc).') // '10.5072/abc'
 */
function suggestHandle(text: string): string | undefined {
  const [found = ''] = (isPrefixed(text) ? text : handleInText(text)).split('?', 1);
  const meant = trimPunctuation(found);
  return meant !== text && hasPrefix(meant) && /^[^/\s]+\/./s.test(meant) ? meant : undefined;
}

const isPrefixed = (text: string): boolean => /^\d[^\s/:]*\//.test(text);

function handleInText(text: string): string {
  const path = text.replace(/^https?:\/*[^/]*/i, '');
  const [, named, dotted] = HANDLE_IN_TEXT.exec(path) ?? [];
  const found = named ?? dotted ?? text;
  return path === text ? found : (tryDecode(decodeURIComponent, found) ?? found);
}

/** Maximum number of removed characters. Each costs a scan of the text. */
const MAX_TRIMMED = 8;
const OPENING: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{', '>': '<' };

/** Removes punctuation at the end, and closing brackets that nothing in the text opens. */
function trimPunctuation(text: string): string {
  let trimmed = text;
  for (let times = 0; times < MAX_TRIMMED; times++) {
    const last = trimmed.at(-1) ?? '';
    const opening = OPENING[last];
    const isPunctuation =
      opening === undefined
        ? /[.,;:/'"’”\s]/.test(last)
        : trimmed.split(last).length > trimmed.split(opening).length;
    if (!isPunctuation) break;
    trimmed = trimmed.slice(0, -1);
  }
  return trimmed;
}

/** Renders untrusted text: only an email address becomes a link. */
function prefixContactSteps(contact = ''): Html[] {
  if (contact === '') return [];
  const shown = html`<bdi>${contact}</bdi>`;
  const isAddress = /^[\w.+-]+@[\w.-]+$/.test(contact);
  return [
    html`Ask the operator of the prefix: ${isAddress ? html`<a href="mailto:${contact}">${shown}</a>` : shown}`,
  ];
}

/** Uses the first `mailto:` footer link as the contact. */
function contactSteps({ footerLinks }: PageBranding): Html[] {
  const contact = footerLinks.find(({ url }) => url.startsWith('mailto:'));
  if (contact === undefined) return [];
  return [html`Ask the operator of this service: <a href="${contact.url}">${contact.text}</a>`];
}

function renderSteps(steps: readonly Html[]): Html | undefined {
  if (steps.length === 0) return undefined;
  return html`<section aria-labelledby="next">
    <h2 id="next">What you can do</h2>
    <ul class="steps">
      ${steps.map((step) => html`<li>${step}</li>`)}
    </ul>
  </section>`;
}
