// The ownership check prevents a write from locking the caller out.
import { describe, expect, it, vi } from 'vitest';
import type { HandleValue, ValueReference } from '../../src/handle/value.js';
import { runToEnd } from '../../src/time-slicer.js';
import { assertMember, groupsToSearch } from '../../src/v2/ownership.js';
import { adminValue, textValue } from '../support/v2-values.js';

type ReadGroup = (handle: string) => Promise<readonly HandleValue[] | undefined>;

const identity = { handle: '21.T1/USER01', index: 300 };
const stranger = { handle: '21.T1/USER02', index: 300 };
const group = { handle: '21.T1/GROUP', index: 200 };
const automatic = { handle: '0.NA/21.T1', index: 300 };

const vlist = (...value: ValueReference[]): HandleValue[] => [
  { index: 200, type: 'HS_VLIST', data: { format: 'vlist', value } },
];

async function writing(
  values: HandleValue[],
  {
    current = [],
    readRecord = () => Promise.resolve([]),
  }: { current?: HandleValue[]; readRecord?: ReadGroup } = {},
) {
  const groups = runToEnd(groupsToSearch({ values, current, identity, automatic }));
  const readGroup = async (handle: string) => {
    const read = await readRecord(handle);
    return read && { values: read, chars: 0 };
  };
  const search = { handle: '21.T1/x', identity, run: runToEnd, readGroup };
  if (groups !== undefined) await assertMember(groups, search);
}

const weak = (admin: ValueReference): HandleValue => ({
  index: 100,
  type: 'HS_ADMIN',
  data: { format: 'admin', value: { ...admin, permissions: '110001100011' } },
});

describe('ePIC v2 write with an accepted administrator', () => {
  it.each<[string, HandleValue[]]>([
    ['is the caller', [adminValue(100, identity)]],
    [
      'is the caller with a different prefix case',
      [adminValue(100, { ...identity, handle: '21.t1/USER01' })],
    ],
    ['is the caller at any index', [adminValue(100, { ...identity, index: 0 })]],
    ['is the configured administrator', [adminValue(100, automatic)]],
    ['is the caller among others', [adminValue(100, stranger), adminValue(101, identity)]],
  ])('is allowed when the administrator %s', async (_case, values) => {
    await expect(writing(values)).resolves.toBeUndefined();
  });

  it('is allowed when the administrator is unchanged', async () => {
    const current = [adminValue(5, stranger)];
    await expect(writing([adminValue(100, stranger)], { current })).resolves.toBeUndefined();
  });

  it('is allowed when a group contains the caller directly or through a nested group', async () => {
    const inner = { handle: '21.T1/INNER', index: 0 };
    const records = new Map([
      [group.handle, vlist(stranger, inner)],
      [inner.handle, vlist(identity)],
    ]);
    const readRecord: ReadGroup = (handle) => Promise.resolve(records.get(handle) ?? []);
    await expect(writing([adminValue(100, group)], { readRecord })).resolves.toBeUndefined();
  });

  it('is allowed when the administrator is the prefix handle, even at a different server', async () => {
    const prefix = adminValue(100, { handle: '0.NA/21.T1', index: 200 });
    const readRecord = () => Promise.resolve(undefined);
    await expect(writing([prefix], { readRecord })).resolves.toBeUndefined();
  });
});

describe('ePIC v2 write that would lock the caller out', () => {
  const refusal = expect.objectContaining({ code: 'V2_LOCKOUT', status: 400 }) as Error;

  it.each<[string, HandleValue[]]>([
    ['there is no administrator', [textValue(1, 'URL')]],
    ['the administrator is a third party', [adminValue(100, stranger)]],
    [
      'the administrator differs from the caller in suffix case',
      [adminValue(1, { ...identity, handle: '21.T1/user01' })],
    ],
    [
      'the administrator has a different index than the caller',
      [adminValue(100, { ...identity, index: 301 })],
    ],
    ['the caller would have no modification right', [weak(identity)]],
    ['the administrator is unreadable', [{ ...textValue(100, 'HS_ADMIN'), data: 'nobody' }]],
  ])('is rejected when %s', async (_case, values) => {
    await expect(writing(values)).rejects.toThrow(refusal);
  });

  it('is rejected when the caller replaces a group with a different administrator', async () => {
    await expect(writing([adminValue(1, stranger)], { current: [adminValue(1, group)] })).rejects.toThrow(
      refusal,
    );
  });

  it('is rejected when the caller is a member at a different index of the group', async () => {
    const other = { index: 201, type: 'HS_VLIST', data: { format: 'vlist', value: [identity] } };
    const readRecord = () => Promise.resolve([...vlist(stranger), other]);
    await expect(writing([adminValue(100, group)], { readRecord })).rejects.toThrow(refusal);
  });

  it('is rejected for a foreign prefix handle at a different server', async () => {
    const foreign = adminValue(100, { handle: '0.NA/99.X', index: 200 });
    await expect(writing([foreign], { readRecord: () => Promise.resolve(undefined) })).rejects.toThrow(
      refusal,
    );
  });
});

describe('ePIC v2 group search', () => {
  it('stops at cyclic groups', async () => {
    const readRecord = vi.fn<ReadGroup>(() => Promise.resolve(vlist(group)));
    await expect(writing([adminValue(100, group)], { readRecord })).rejects.toThrow();
    expect(readRecord).toHaveBeenCalledTimes(1);
  });

  it('compares at most 2,048 members of a group', async () => {
    const strangers = Array.from({ length: 2048 }, (_, at) => ({ handle: `21.T1/S${at}`, index: 300 }));
    const readMembers = (...members: ValueReference[]): ReadGroup => {
      return (handle) => Promise.resolve(handle === group.handle ? vlist(...members) : []);
    };
    const values = [adminValue(100, group)];
    await expect(
      writing(values, { readRecord: readMembers(...strangers.slice(1), identity) }),
    ).resolves.toBeUndefined();
    await expect(writing(values, { readRecord: readMembers(...strangers, identity) })).rejects.toThrow();
  });

  it('reads at most 32 records', async () => {
    const many = Array.from({ length: 100 }, (_, at) => ({ handle: `21.T1/G${at}`, index: 200 }));
    const readRecord = vi.fn<ReadGroup>(() => Promise.resolve(vlist(...many)));
    await expect(writing([adminValue(100, group)], { readRecord })).rejects.toThrow();
    expect(readRecord).toHaveBeenCalledTimes(32);
  });

  it('reads nothing when the caller is named directly', async () => {
    const readRecord = vi.fn<ReadGroup>();
    await writing([adminValue(100, stranger), adminValue(101, identity)], { readRecord });
    expect(readRecord).not.toHaveBeenCalled();
  });
});
