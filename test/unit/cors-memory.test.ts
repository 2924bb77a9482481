// Any client that may write a record spells the names of its headers (10320/headers), so their spellings have no bound.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { linesWithCors } from '../../src/http/cors.js';
import { linesOf } from '../../src/http/raw-response.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const heapMib = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** Spells a header name with upper and lower case by the bits of a number. */
const spelt = (bits: number): string =>
  Array.from('xlicenceoftherecord', (letter, at) => ((bits >> at) & 1 ? letter.toUpperCase() : letter)).join(
    '',
  );

test('CORS headers keep a bounded number of header names', () => {
  const before = heapMib();
  for (let bits = 0; bits < 40_000; bits++)
    linesWithCors(linesOf(['ETag', '"1"', spelt(bits), 'CC0']), 'https://app.example.org');
  expect(heapMib() - before).toBeLessThan(2);
  expect(linesWithCors(linesOf(['X-LICENCE-of', 'CC0']), 'https://app.example.org')).toContain(
    'X-Licence-Of',
  );
});
