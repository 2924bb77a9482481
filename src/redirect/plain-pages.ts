// The pages without a record: the look-up field, and what went wrong.
import { html } from '../html/html.js';
import { type Page, lookUpForm } from '../html/layout.js';

export const frontPage: Page = {
  title: 'Look up a handle',
  main: html`<h1>Look up a handle</h1>
    <section>
      ${lookUpForm()}
      <p class="quiet">
        With or without <code>hdl:</code>, <code>doi:</code> or the address of a resolver in front.
      </p>
    </section>`,
};

/** What a failure is told as: RFC 9457 for programs, the same words on a page for people. */
export interface Problem {
  status: number;
  title: string;
  detail?: string;
  handle?: string;
  code?: string;
  /** As a Handle server has it: its clients read it from every JSON, of a 404 above all. */
  responseCode: number;
  /** Becomes a header, and no part of the text. */
  retryAfter?: string;
}

export function problemPage({ status, title, detail, handle }: Problem): Page {
  return {
    title,
    main: html`<h1><span class="kind">${status}</span>${title}</h1>
      ${detail === undefined ? undefined : html`<p class="note bad"><bdi>${detail}</bdi></p>`}
      ${hintFor(handle)}
      <section>${lookUpForm(handle)}</section>`,
  };
}

const hintFor = (handle: string | undefined) =>
  handle?.endsWith('/') === true
    ? html`<p>The handle ends in a slash: perhaps it is meant without.</p>`
    : undefined;

/** Problem details (RFC 9457 section 3); `type` is left out, which means that title and status say it all. */
export const problemJson = (problem: Omit<Problem, 'retryAfter'>): string => JSON.stringify(problem);
