import { fc } from '../support/property.js';
import { describe, expect, test } from 'vitest';
import { identityOf } from '../../src/http/identity.js';
import { readV2Login } from '../../src/v2/call.js';

const basic = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

/** Percent-encodes the chosen characters and always the colon, slash and percent sign. */
const spelled = (text: string, choices: readonly boolean[]): string =>
  Array.from(text)
    .map((char, at) => {
      const isEncoded = ':/%'.includes(char) || choices[at % choices.length] === true;
      return isEncoded
        ? [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
        : char;
    })
    .join('');

describe('Basic login identity', () => {
  test('is independent of the password and the spelling of the name', () => {
    fc.assert(
      fc.property(
        fc.nat(99_999),
        fc.stringMatching(/^[a-z0-9.]{1,8}\/[a-zA-Z0-9_ü+-]{1,12}$/),
        fc.array(fc.boolean(), { minLength: 1 }),
        fc.string(),
        fc.nat(3),
        (index, handle, choices, password, zeros) => {
          const name = `${'0'.repeat(zeros)}${index}:${handle}`;
          const login = basic(spelled(name, choices), password);
          const identity = identityOf(
            basic(encodeURIComponent(`${index}:${handle.toUpperCase().replaceAll('Ü', 'ü')}`), 'other'),
          );
          expect(identityOf(login)).toBe(identity);
          expect(readV2Login(login, new Map()).identityKey).toBe(identity);
          expect(readV2Login(basic('alice', password), new Map([['alice', name]])).identityKey).toBe(
            identity,
          );
        },
      ),
    );
  });

  test.each([
    ['300%3A21.T1%2Fuser', '300:21.T1/USER'],
    ['21.T1/user', '0:21.T1/USER'],
    ['%', '0:%'],
  ])('is parsed from %s as %s', (name, identity) => {
    expect(identityOf(basic(name, 'secret'))).toBe(identity);
  });

  test.each([undefined, '', 'Basic', 'Basic ???', 'Handle sessionId="abc"', 'Bearer x'])(
    'is absent for %s',
    (header) => {
      expect(identityOf(header)).toBeUndefined();
    },
  );
});
