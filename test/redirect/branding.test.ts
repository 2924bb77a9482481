import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';

useNock();

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

describe('page branding', () => {
  test.each([{}, { PAGE_ACCENT_COLOR: '#00695c' }])(
    'has a style hash in the Content-Security-Policy: %j',
    async (env) => {
      const proxy = await startProxy(env);
      for (const path of ['/', '/openapi']) {
        const { text, headers } = await proxy.ask(path);
        const style = /<style>([^]*?)<\/style>/.exec(text)?.[1] ?? '';
        expect(headers['content-security-policy']).toContain(`style-src ${hashOf(style)};`);
      }
    },
  );

  test('applies the accent colour to the main button and to links on light pages', async () => {
    const proxy = await startProxy({ PAGE_ACCENT_COLOR: '#00695c' });
    const { text } = await proxy.ask('/');
    expect(text.match(/--accent:#00695c;--on-accent:#fff/g)).toHaveLength(2);
    expect(text.match(/--link:#00695c/g)).toHaveLength(1);
  });

  test('shows escaped footer links on every page', async () => {
    const links = [
      { text: 'Imprint & <b>more</b>', url: 'https://example.org/imprint?a="b"&c' },
      { text: 'Contact', url: 'mailto:pid@example.org' },
    ];
    const proxy = await startProxy({ PAGE_FOOTER_LINKS: JSON.stringify(links) });
    for (const path of ['/', '/openapi', '/api-of-nothing']) {
      const { text } = await proxy.ask(path, { headers: { Accept: 'text/html' } });
      expect(text).toContain(
        '<a href="https://example.org/imprint?a=%22b%22&#38;c">Imprint &#38; &#60;b&#62;more',
      );
      expect(text).toContain('<a href="mailto:pid@example.org">Contact</a>');
    }
  });
});
