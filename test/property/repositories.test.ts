import { partial } from '../support/partial.js';
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { handleRef } from '../../src/handle/handle.js';
import { ServiceError } from '../../src/errors.js';
import { DSPACE } from '../../src/plugins/repositories/repositories.js';
import { fillAddress } from '../../src/upstream/url-record.js';
import { toText } from '../../src/handle/bytes.js';
import { runToEnd } from '../../src/time-slicer.js';

const suffixes = fc.string({ unit: fc.constantFrom(...Array.from('aZ0.-_/+;%?#&= ~@:|\\{}"<>äß漢😀\r\n')) });
const handles = suffixes.map((suffix) => `20.1/${suffix}`);

const TEMPLATES = [
  'https://journal.test/item/{suffix}',
  'https://journal.test/{prefix}/{suffix}/view?id={handle}&x=1#{suffix}',
  'https://journal.test/?persistentId=hdl:{handle}',
];

describe('filled URL template', () => {
  test.prop([fc.constantFrom(...TEMPLATES), handles])(
    'retains the host and the boundaries of its query and fragment',
    (template, handle) => {
      const filled = fillAddress(template, handle);
      if (filled === undefined) return;
      const [url, origin] = [new URL(filled), new URL(template)];
      expect([url.origin, url.username]).toEqual([origin.origin, '']);
      expect([url.search.split('&').length, url.hash === '']).toEqual([
        origin.search.split('&').length,
        !template.includes('#') || handle === '20.1/',
      ]);
      // A URL parser does not change the filled template.
      expect(url.href).toBe(filled);
    },
  );

  test.prop([handles])('contains a handle that decodes to the original', (handle) => {
    const filled = fillAddress(TEMPLATES[2]!, handle);
    expect(new URL(filled!).searchParams.get('persistentId')).toBe(`hdl:${handle}`);
  });
});

const { outcomeOf } = DSPACE.protocol(partial({ url: 'https://repository.test/server', prefixes: ['20.1'] }));

const outcomeFor = (body: string, { status = 200, handle = '20.1/1' } = {}) =>
  runToEnd(outcomeOf({ status, headers: {}, body, handle, caseSensitive: false }));

describe('DSpace response', () => {
  test.prop([fc.webUrl(), fc.array(fc.constantFrom(null, 'x'))])(
    'becomes a record with one value if it contains a web URL',
    (url, rest) => {
      const outcome = outcomeFor(JSON.stringify([url, ...rest]));
      const values: unknown = outcome.kind === 'found' && JSON.parse(toText(outcome.values));
      expect(values).toMatchObject([{ index: 100, type: 'URL', data: { format: 'string', value: url } }]);
    },
  );

  test.prop([fc.oneof(fc.json(), fc.string()), fc.integer({ min: 100, max: 599 })])(
    'becomes not found or a ServiceError if it contains no web URL',
    (body, status) => {
      try {
        const { kind } = outcomeFor(body, { status });
        expect([kind, status]).toEqual(['not-found', 200]);
      } catch (error) {
        expect(error).toBeInstanceOf(ServiceError);
      }
    },
  );
});

describe('DSpace handle', () => {
  test.prop([handles])('is requested at a path under the configured address', (handle) => {
    const { read } = DSPACE.protocol(partial({ url: 'https://repository.test/server', prefixes: ['20.1'] }));
    const request = read(handleRef(handle, true), false);
    const path = 'path' in request ? request.path : '';
    expect(new URL(path, 'https://repository.test').pathname).toBe(path);
    expect(decodeURIComponent(path)).toBe(`/server/resolve/${handle}`);
  });
});
