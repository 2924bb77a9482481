import { describe, expect, it } from 'vitest';
import { configFrom, problemsFrom } from '../support/load-config.js';

describe('page configuration', () => {
  it.each(['#00695c', '#06C'])('accepts the accent colour %s', (colour) => {
    expect(configFrom({ env: { PAGE_ACCENT_COLOR: colour } }).page.accentColor).toBe(colour);
  });

  it.each([
    'red',
    '00695c',
    '#12',
    '#1234',
    '#12345g',
    '#06c;}',
    '#06c\n',
    'var(--x)',
    '#06c}body{display:none',
    // Light colours; the last has a contrast of only 4.4:1 on the error page background.
    '#fc0',
    '#6e6e6e',
  ])('rejects the accent colour %j', (colour) => {
    const [problem = ''] = problemsFrom({ env: { PAGE_ACCENT_COLOR: colour } });
    expect(problem).toContain('page.accentColor');
    expect(problem).toContain('give a colour such as #00695c or #06c');
  });

  it('reads footer links from the file or a variable', () => {
    const yaml = `
page:
  footerLinks:
    - text: Imprint
      url: https://example.org/imprint
    - text: Contact
      url: mailto:pid@example.org?subject=PID
`;
    const links = [
      { text: 'Imprint', url: 'https://example.org/imprint' },
      { text: 'Contact', url: 'mailto:pid@example.org?subject=PID' },
    ];
    expect(configFrom({ yaml }).page.footerLinks).toEqual(links);
    const env = { PAGE_FOOTER_LINKS: JSON.stringify(links) };
    expect(configFrom({ env }).page.footerLinks).toEqual(links);
  });

  it.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'ftp://example.org',
    '/imprint',
    'mailto:',
    'mailto:x',
    '',
  ])('rejects the footer link %j', (url) => {
    const env = { PAGE_FOOTER_LINKS: JSON.stringify([{ text: 'Imprint', url }]) };
    const [problem = ''] = problemsFrom({ env });
    expect(problem).toContain('page.footerLinks.0.url');
    expect(problem).toContain('give an http://, https:// or mailto: address');
  });
});
