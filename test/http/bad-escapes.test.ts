// Queries and forms with escapes that are no UTF-8: parsed as others, at the same cost.
import { fc, test } from '../support/property.js';
import { describe, expect, onTestFinished, test as example, vi } from 'vitest';
import { tryDecode } from '../../src/handle/bytes.js';
import { parseParameters } from '../../src/http/target.js';
import { useProxy } from '../support/proxy.js';

const pieces = [
  '%',
  '%F',
  '%FF',
  '%C3',
  '%BC',
  '%c3%bc',
  '%EF%BB%BF',
  '%ED%A0%80',
  '%5C',
  '%41',
  '%26',
  '%3D',
  '%2B',
];
const queries = fc.array(fc.constantFrom(...pieces, '+', '&', '=', ';', 'a', '?'));

test.prop([queries])('parameters are those of URLSearchParams', (parts) => {
  const query = parts.join('');
  expect([...parseParameters(query)]).toEqual([...new URLSearchParams(query)]);
});

example('a form keeps the other characters of a parameter with a bad escape', () => {
  // Node.js reads `ü` as the byte FC there.
  expect(parseParameters('ü%=😀%FF').get('ü%')).toBe('😀\ufffd');
});

describe('a query or form of bad escapes', () => {
  const proxy = useProxy();

  example.each<[path: string, method?: string, body?: string]>([
    ['/api/handles/21.T11998/none'],
    ['/21.T11998/none'],
    ['/'],
    ['/api/handles', 'GET'],
    ['/api/resolve', 'POST', '{"handles":[]}'],
    ['/', 'POST', 'hdl=x&%FF&%5C%'],
    ['/openapi.json'],
    ['/api/handles/21.T11998/none', 'PUT', '[]'],
  ])('reaches no decoder that throws an error for each parameter: %s', async (path, method = 'GET', body) => {
    const parsed: string[] = [];
    class Recording extends URLSearchParams {
      constructor(init?: ConstructorParameters<typeof URLSearchParams>[0]) {
        super(init);
        if (typeof init === 'string') parsed.push(init);
      }
    }
    vi.stubGlobal('URLSearchParams', Recording);
    onTestFinished(() => void vi.unstubAllGlobals());
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      ...(method === 'PUT' && { 'If-None-Match': '*' }),
    };
    await proxy.ask(`${path}?a=%FF&%5C%&%C3=%BC`, { method, headers, ...(body !== undefined && { body }) });
    expect(parsed.length).toBeGreaterThan(0);
    expect(parsed.filter((text) => tryDecode(decodeURIComponent, text) === undefined)).toEqual([]);
  });
});
