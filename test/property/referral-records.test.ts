// An untrusted site record always leads to an outcome or a reported error.
import { partial } from '../support/partial.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { handleRef } from '../../src/handle/handle.js';
import type { HandleValue } from '../../src/handle/value.js';
import { createReferrals, referralTo } from '../../src/plugins/referrals/follow.js';

const type = fc.constantFrom('HS_SITE', 'hs_site', 'HS_SERV', 'HS_NA_DELEGATE', 'URL');
const server = fc.record(
  {
    address: fc.oneof(fc.ipV4(), fc.ipV6(), fc.jsonValue()),
    interfaces: fc.oneof(
      fc.array(
        fc.record({
          query: fc.boolean(),
          protocol: fc.oneof(fc.constantFrom('HTTP', 'HTTPS', 'TCP'), fc.jsonValue()),
          port: fc.oneof(fc.integer(), fc.jsonValue()),
        }),
      ),
      fc.jsonValue(),
    ),
  },
  { requiredKeys: [] },
);
const site = fc.record(
  {
    primarySite: fc.boolean(),
    hashOption: fc.integer(),
    attributes: fc.oneof(
      fc.array(fc.record({ name: fc.constantFrom('domain', 'path'), value: fc.string() })),
      fc.jsonValue(),
    ),
    servers: fc.oneof(fc.array(fc.oneof(server, fc.jsonValue())), fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const data = fc.oneof(
  fc.record({ format: fc.constant('site'), value: fc.oneof(site, fc.jsonValue()) }),
  fc.record({ format: fc.constant('string'), value: fc.constantFrom('0.NA/99.X', 'a/b') }),
  fc.jsonValue(),
);
// A refusal may contain values without a type.
const values = fc.array(fc.record({ index: fc.nat(), type, data }, { requiredKeys: [] }), { maxLength: 4 });
const EVERY_PORT = Array.from({ length: 65_536 }, (_, port) => port);

describe('referral record', () => {
  test('always leads to a server response or a reported failure', async () => {
    await fc.assert(
      fc.asyncProperty(values, async (record) => {
        const asked: string[] = [];
        const read = createReferrals(
          partial({ referralPorts: EVERY_PORT, timeoutMs: 60_000 }),
          () => Promise.resolve(referralTo(record as HandleValue[])),
          ({ url }) => {
            expect(new URL(url).protocol).toMatch(/^https?:$/);
            asked.push(url);
            return partial({ read: () => Promise.resolve({ kind: 'empty' }) });
          },
        );
        const reading = read({ handle: handleRef('99.X/a', false), authoritative: false });
        const outcome = await reading.catch((error: unknown) => error);
        if (asked.length > 0) expect(outcome).toEqual({ kind: 'empty' });
        else expect(outcome).toBeInstanceOf(ServiceError);
      }),
    );
  });
});
