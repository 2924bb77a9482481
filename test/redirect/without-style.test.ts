// Pages in text browsers, which ignore style sheets, scripts and the attribute `hidden`.
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { mockUpstream } from '../support/upstream.js';

useNock();

/** Inline elements that touch without a space, and so their words too. */
const JOINED_WORDS = /[^\s>]<\/(?:a|bdi|button|code|span|strong)><?(?!\/)[a-z\d][^>]*/i;

describe('pages without a style sheet', () => {
  test.each(['/', '/21.T11998/abc?noredirect', '/21.T11998/none', '/prefixes/21.T11998', '/openapi'])(
    'have a space between words that the style sheet separates: %s',
    async (path) => {
      mockUpstream();
      const { ask } = await startProxy({ PREFIX_PAGES_PREFIXES: '21.T11998' });
      expect((await ask(path)).text).not.toMatch(JOINED_WORDS);
    },
  );

  test('have a form without values of buttons, which lynx shows in front of their text', async () => {
    mockUpstream();
    const { ask } = await startProxy();
    expect((await ask('/')).text).not.toMatch(/<button[^>]*value/);
    expect((await ask('/?hdl=21.T11998/abc&noredirect=')).headers.location).toBe(
      '/21.T11998/abc?noredirect=',
    );
    expect((await ask('/21.T11998/abc?noredirect=')).text).toContain('Persistent link');
  });

  test('have such a space on the status page', async () => {
    const { app } = await startProxy();
    expect((await request(app.admin).get('/')).text).not.toMatch(JOINED_WORDS);
  });
});

describe('record page without scripts', () => {
  test('has the link of the handle, and no button', async () => {
    const leads = await startLeads({ 'a b': [value(1, 'URL', 'https://example.org/abc')] });
    const { text } = await leads.get('a%20b?noredirect');
    expect(text).toMatch(/<a [^>]*href="\/21\.T11998\/a%20b"/);
    expect(text).not.toContain('<button');
  });
});
