// Plain redirects to a URL value are served synchronously from memory.
import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const LIST = '<locations><location href="https://example.org/list"/></locations>';

const records = {
  url: [value(1, 'URL', 'https://example.org/ä b'), value(2, 'DESC', 'text')],
  'lower case': [value(1, 'url', 'https://example.org/'), value(2, 'EMAIL', 'a@example.org')],
  two: [value(9, 'URL', 'https://example.org/9'), value(1, 'URL', 'https://example.org/1')],
  subtype: [value(1, 'URL.OLD', 'https://example.org/old'), value(2, 'URL', 'https://example.org/url')],
  'subtype alone': [value(1, 'url.old', 'https://example.org/old')],
  'type of a type': [
    value(1, '0.TYPE/URL', 'https://example.org/type'),
    value(2, 'URL.X', 'https://example.org/x'),
  ],
  'type of a type alone': [value(1, '0.TYPE/URL', 'https://example.org/type')],
  blank: [value(1, 'URL', ' '), value(2, 'URL', 'https://example.org/second')],
  mail: [value(1, 'URL', 'mailto:a@example.org')],
  script: [value(1, 'URL', 'javascript:alert(1)')],
  'other host': [value(1, 'URL', 'https://example.com/')],
  alias: [value(1, 'URL', 'https://example.org/'), value(2, 'hs_alias', '21.T11998/url')],
  list: [value(1, 'URL', 'https://example.org/'), value(2, '10320/LOC', LIST)],
  links: [
    value(1, 'URL', 'https://example.org/'),
    value(2, '10320/links', '<links><location rel="describedby" href="https://example.org/json"/></links>'),
  ],
  long: [value(1, 'URL', 'https://example.org/'), value(2, 'DESC', 'x'.repeat(20_000))],
  none: [value(1, 'DESC', 'text')],
};

describe('plain redirect from memory', () => {
  test.each(Object.keys(records))(
    'equals the redirect for a request with inert parameters: %s',
    async (name) => {
      const leads = await startLeads(records, { REDIRECT_ALLOWED_HOSTS: 'example.org' });
      const path = encodeURIComponent(name);
      const answer = async (target: string): Promise<unknown[]> => {
        const { status, headers, text } = await leads.get(target);
        const more = ['cache-control', 'expires', 'age', 'cache-status', 'vary', 'content-type', 'link'];
        const shown = [headers.location, text].map((part) => part?.replaceAll('?nothing', ''));
        return [status, ...shown, ...more.map((header) => headers[header])];
      };
      // These requests cache the record and its prefix records.
      await answer('url?nothing');
      await answer(`${path}?nothing`);
      const wanted = await answer(`${path}?nothing`);
      expect(await answer(path)).toEqual(wanted);
      expect(await answer(path)).toEqual(wanted);
    },
  );
});
