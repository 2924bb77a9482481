// Each serialized change is exactly one line for any line reader, and contains only members of a change.
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import type { LoggedChange } from '../../src/handle/outcome.js';
import { formatLine, formatGap, isGap } from '../../src/plugins/changes/changes.js';
import { identityOf } from '../../src/http/identity.js';
import { unicodeTexts } from '../support/code-points.js';

const MEMBERS = [
  ...['operation', 'id', 'time', 'handle', 'prefix', 'indexes', 'identity', 'claimedIdentity'],
  ...['interface', 'instance', 'outcome', 'requestId'],
];
const text = fc.oneof(
  unicodeTexts(),
  fc.string({
    unit: fc.constantFrom('\n', '\r', '\u2028', '\u2029', '\u0085', '\v', '\0', '"', '\\', '\ud800'),
  }),
);
const change: fc.Arbitrary<LoggedChange> = fc.record(
  {
    operation: fc.constantFrom('create', 'update', 'delete', 'purge'),
    interface: fc.constantFrom('record', 'v2', 'admin'),
    outcome: fc.constantFrom('changed', 'unknown'),
    handle: text,
    prefix: text,
    indexes: fc.oneof(fc.array(fc.integer()), fc.constant('various' as const)),
    identity: text,
    isConfirmed: fc.constant(true),
    requestId: text,
  },
  { requiredKeys: ['operation', 'interface', 'outcome', 'isConfirmed'] },
);
const stamp = fc.record({ id: fc.uuid(), time: fc.constant('2026-11-26T12:00:00.000Z'), instance: text });

describe('change line', () => {
  test.prop([change, stamp])(
    'contains no line separator or control character, and can be parsed',
    (made, stamped) => {
      const line = formatLine(made, stamped);
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
      const { operation, ...parsed } = JSON.parse(line) as LoggedChange;
      const { isConfirmed, ...members } = made;
      expect(isConfirmed).toBe(true);
      expect({ operation, ...parsed }).toEqual(JSON.parse(JSON.stringify({ ...members, ...stamped })));
      expect(isGap(line)).toBe(false);
    },
  );

  test.prop([change, stamp, fc.dictionary(fc.string(), text)])(
    'contains only the members of a change',
    (made, stamped, others) => {
      const line = formatLine({ ...others, values: ['v'], password: 'p', ...made } as LoggedChange, stamped);
      const names = Object.keys(JSON.parse(line) as object);
      expect(names.filter((name) => !MEMBERS.includes(name))).toEqual([]);
    },
  );

  test.prop([fc.stringMatching(/^[^:]{0,20}$/u), fc.uuid(), fc.boolean()])(
    'contains the identity, confirmed or claimed, without its password',
    (name, password, isConfirmed) => {
      const login = `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
      const identity = identityOf(login);
      const by = { identity, isConfirmed };
      const made = { operation: 'update', interface: 'record', outcome: 'changed', ...by } as const;
      const line = formatLine(made, { id: '1', time: '2', instance: '3' });
      expect(line).not.toContain(password);
      const member = isConfirmed ? 'identity' : 'claimedIdentity';
      expect(JSON.parse(line)).toMatchObject({ [member]: identity });
    },
  );

  test.prop([fc.nat(), stamp])(
    'differs from a gap line, which contains the number of dropped changes',
    (dropped, stamped) => {
      const line = formatGap(dropped, stamped);
      expect(isGap(line)).toBe(true);
      expect(JSON.parse(line)).toMatchObject({ operation: 'gap', dropped });
    },
  );
});
