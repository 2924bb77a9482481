// The front page with the look-up form.
import { type Html, html } from '../html/html.js';
import type { PageBranding, SitePage } from '../html/layout.js';

interface LookUp {
  handle?: string | undefined;
  /** Of the example in an empty field. */
  prefix: string | undefined;
}

export const lookUpForm = ({ handle = '', prefix }: LookUp): Html =>
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
