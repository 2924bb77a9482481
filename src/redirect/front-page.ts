// The front page with the look-up form.
import { type Html, html } from '../html/html.js';
import type { SitePage } from '../html/layout.js';

export const lookUpForm = (handle = ''): Html =>
  html`<form action="/" method="get" role="search">
    <label for="hdl">Handle</label>
    <input
      id="hdl"
      name="hdl"
      value="${handle}"
      placeholder="21.T11998/abc"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      required
      maxlength="2048"
    />
    <button class="button main">Open</button>
    <button class="button" name="noredirect" value="on">Show the record</button>
  </form>`;

export const frontPage: SitePage = {
  title: 'Look up a handle',
  main: html`<h1>Look up a handle</h1>
    <section>
      ${lookUpForm()}
      <p class="quiet">With or without <code>hdl:</code>, <code>doi:</code> or the URL of a resolver.</p>
    </section>`,
};
