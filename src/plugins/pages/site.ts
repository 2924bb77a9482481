// Renders the pages of the redirect interface with the name, logo and colour of the service.
import type { Started } from '../../plugin.js';
import type { Config } from '../../config/schema.js';
import { handleToPath } from '../../handle/handle.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import {
  type Html,
  type PageBranding,
  type SitePage,
  brandingOf,
  createPageLayout,
  html,
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
    *record(view) {
      return renderPage(yield* recordPage(view));
    },
  };
}

interface LookUp {
  handle?: string | undefined;
  /** Prefix in the placeholder of the input field. */
  prefix: string | undefined;
}

const lookUpForm = ({ handle = '', prefix }: LookUp): Html =>
  html`<form action="/" method="get" role="search">
    <label for="hdl">Handle</label>
    <input
      id="hdl"
      name="hdl"
      value="${handle}"
      placeholder="${prefix === undefined ? 'prefix/suffix' : `${prefix}/abc`}"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      required
      maxlength="2048"
    />
    <button class="button main">Open</button>
    <button class="button" name="noredirect" value="on">Show the record</button>
  </form>`;

export const frontPage = ({ examplePrefix }: PageBranding): SitePage => ({
  title: 'Look up a handle',
  main: html`<h1>Look up a handle</h1>
    <section>
      ${lookUpForm({ prefix: examplePrefix })}
      <p class="quiet">With or without <code>hdl:</code>, <code>doi:</code> or the URL of a resolver.</p>
    </section>`,
});

/** Public resolver for all prefixes. */
const GLOBAL_RESOLVER = 'https://hdl.handle.net/';

/** Renders the front page with its lookup form, and error pages with suggested next steps. */
export function problemPage({
  failure,
  handle: asked,
  requestId,
  retryUrl,
  branding,
  contact,
}: ProblemView & { branding: PageBranding }): SitePage {
  const problem = problemOf(failure, asked);
  const { status, title, detail, code, handle } = problem;
  const reference = html`. Reference: <code>${requestId}</code>, by which the operator finds this request in
    the log`;
  return {
    title,
    main: html`<h1><span class="kind">${status}</span>${title}</h1>
      ${detail === undefined ? undefined : html`<p class="note bad"><bdi>${detail}</bdi></p>`}
      ${renderSteps([
        ...stepsAfter(problem, retryUrl),
        ...prefixContactSteps(contact),
        ...contactSteps(branding),
      ])}
      <section>${lookUpForm({ handle, prefix: branding.examplePrefix })}</section>
      <p class="quiet">Error: <code>${code}</code>${requestId === undefined ? undefined : reference}.</p>`,
  };
}

/** Statuses after which a retry may succeed. */
const TEMPORARY: readonly number[] = [408, 429, 500, 502, 503, 504];

function stepsAfter({ status, code, responseCode, handle }: Problem, retryUrl: string): Html[] {
  if (code === 'REDIRECT_NOT_SERVED' || code === 'NOT_RESPONSIBLE') return elsewhere(handle);
  if (code === 'REDIRECT_NOT_FOUND' && responseCode === RESPONSE_CODE.handleNotFound) {
    const isCut = handle?.endsWith('/') === true;
    const spelling = isCut
      ? html`The handle ends with a slash. Try it without.`
      : html`Check the handle for typing errors: every character counts.`;
    return [spelling, ...elsewhere(handle)];
  }
  return TEMPORARY.includes(status) ? [html`<a class="button main" href="${retryUrl}">Try again</a>`] : [];
}

function elsewhere(handle: string | undefined): Html[] {
  if (handle === undefined) return [];
  const url = GLOBAL_RESOLVER + handleToPath(handle);
  return [
    html`Ask the global resolver, which knows every prefix:
      <a href="${url}" rel="noreferrer nofollow"><bdi>${url}</bdi></a>`,
  ];
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
