// The prefixes of a key, found by their lengths.
import { expect } from 'vitest';
import { PrefixMap } from '../../src/handle/prefix-map.js';
import { fc, test as propertyTest } from '../support/property.js';

const texts = fc.stringMatching(/^[AB]{0,4}$/);

propertyTest.prop([fc.array(texts), fc.array(texts), texts])(
  'a map finds the prefixes of a key that were set and not deleted',
  (added, deleted, key) => {
    const map = new PrefixMap<string>();
    for (const prefix of added) map.set(prefix, prefix);
    for (const prefix of deleted) map.delete(prefix);
    const left = new Set(added.filter((prefix) => !deleted.includes(prefix)));
    expect(map.size).toBe(left.size);
    expect([...map.matching(key)].sort()).toEqual(
      [...left].filter((prefix) => key.startsWith(prefix)).sort(),
    );
  },
);
