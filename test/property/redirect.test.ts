// Arbitrary text in a record or request causes no exception, no invalid header and no unexpected host.
import { validateHeaderValue } from 'node:http';
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { appendToUrl, toRedirectUrl } from '../../src/redirect/target.js';
import { prefersJson, readRedirectParameters, readRedirectQuery } from '../../src/redirect/request.js';
import { handleInUrl } from '../../src/handle/handle.js';
import { html } from '../../src/html/html.js';
import { jumble, noise, texts } from '../support/arbitraries.js';
import { rounds } from '../support/property-rounds.js';

const addresses = fc
  .tuple(
    fc.constantFrom('https://', 'http://', 'HTTPS://', 'ftp://', 'mailto:', ' http://', '', 'javascript:'),
    jumble,
  )
  .map(([scheme, rest]) => scheme + rest);
const anyHost = { allowedHosts: undefined };

describe('redirect properties', () => {
  describe('redirect target', () => {
    test.prop([addresses], { numRuns: rounds(3000) })(
      'is a valid header value and a valid URL with an allowed scheme',
      (value) => {
        const address = toRedirectUrl(value, anyHost);
        if (!address.ok) return;
        const { url } = address;
        expect(url).toMatch(/^(?:https?|ftp|mailto):[\x21-\x7e]*$/i);
        expect(url).not.toMatch(/["<>\\^`{|}]/);
        validateHeaderValue('Location', url);
        expect(URL.canParse(url)).toBe(true);
        expect(['http:', 'https:', 'ftp:', 'mailto:']).toContain(new URL(url).protocol);
        expect(toRedirectUrl(url, anyHost)).toEqual(address);
      },
    );

    test.prop([addresses], { numRuns: rounds(2000) })(
      'stays on the allowed hosts when restricted',
      (value) => {
        const address = toRedirectUrl(value, { allowedHosts: ['example.org', '*.example.org'] });
        if (!address.ok || address.url.toLowerCase().startsWith('mailto:')) return;
        expect(new URL(address.url).hostname).toMatch(/^(?:[^/]+\.)?example\.org\.?$/);
      },
    );

    test.prop([addresses, jumble], { numRuns: rounds(300) })(
      'keeps its host for any appended text',
      (value, text) => {
        const base = toRedirectUrl(value, anyHost);
        const whole = appendToUrl(value, text);
        fc.pre(base.ok && whole !== undefined && !/^\s*mailto:/i.test(value));
        const address = toRedirectUrl(whole, anyHost);
        if (!address.ok) return;
        expect(new URL(address.url).origin).toBe(new URL(base.url).origin);
      },
    );
  });

  describe('redirect request', () => {
    const forms = [
      '',
      '/',
      '//',
      'hdl:',
      'DOI:',
      'info:hdl/',
      'urn:hdl:',
      'https://hdl.handle.net/',
      ' \u00a0',
    ];
    test.prop([fc.constantFrom(...forms), fc.stringMatching(/^[0-9.]{1,8}\/[!-9;-~]{1,20}$/)])(
      'contains the handle after any accepted scheme or resolver URL',
      (form, handle) => {
        expect(handleInUrl(form + handle)).toBe(handle);
      },
    );

    test.prop([noise])('is parsed for any path, query and Accept', (text) => {
      expect(handleInUrl(text)).not.toMatch(/^\s|^\/$/);
      readRedirectQuery(readRedirectParameters(text));
      prefersJson(text);
    });
  });

  describe('text on a page', () => {
    test.prop([texts])('is escaped', (text) => {
      const written = html`<p title="${text}">${[text, undefined, text]}</p>`.text;
      expect(written.match(/[<>"']/g)?.join('')).toBe('<""><>');
      expect(written).not.toMatch(/&(?!#\d+;)/);
    });
  });
});
