// The exceptions that the ledger grants, each with its limits.
import { describe, expect, test } from 'vitest';
import { Ledger, type LedgerOptions, type Reader, type Shown } from './ledger.js';

const HANDLE = '21.T11998/written-1';
const TTL_MS = 60_000;
const MAX_AGE_MS = 1000;
/** The change is in flight between these times. */
const [STARTED_AT, ACKNOWLEDGED_AT] = [10_000, 10_100];

interface Period {
  from: number;
  to: number;
}

interface World extends Partial<Pick<LedgerOptions, 'isStrict'>> {
  trouble?: Period;
  /** A freeze of the life `b1`. */
  freeze?: Period;
  /** End of the writing life `a1`. */
  killedAt?: number;
}

const reader: Reader = { name: 'b1', before: undefined, joinedAt: 0 };

/** Returns the fault in a response with the record from before the change. */
function faultIn({ isStrict = false, trouble, freeze, killedAt }: World, shown: Partial<Shown>) {
  const ledger = new Ledger({
    isStrict,
    disconnectedMaxAgeMs: MAX_AGE_MS,
    ttlMsOf: () => TTL_MS,
    reloadedAfterMs: 3000,
    fenceMs: 25_000,
    wasRedisTroubled: (from, to) => trouble !== undefined && trouble.from <= to && from <= trouble.to,
    wasRedisTroubledThroughout: (from, to) =>
      trouble !== undefined && trouble.from <= from && to <= trouble.to,
    frozenUntil: (life, at) =>
      freeze !== undefined && life === 'b1' && freeze.from <= at && at <= freeze.to ? freeze.to : undefined,
  });
  ledger.stands(HANDLE, { isGone: false });
  ledger.acknowledged(
    HANDLE,
    ledger.begin(HANDLE, { isGone: false, startedAt: STARTED_AT, by: 'a1' }),
    ACKNOWLEDGED_AT,
  );
  if (killedAt !== undefined) ledger.killed('a1', killedAt);
  return ledger.fault({
    ...{ handle: HANDLE, number: 0, askedAt: ACKNOWLEDGED_AT + 100, by: reader, isMarkedStale: false },
    ...shown,
  });
}

const WRONG = 'shows 0, though 1 was acknowledged';
const STALE = { isMarkedStale: true };
/** A trouble during the change, and times around it. */
const DURING = { from: STARTED_AT + 50, to: ACKNOWLEDGED_AT + 5000 };
const BEFORE = { from: STARTED_AT - 9000, to: STARTED_AT - 1 };
const AFTER = { from: ACKNOWLEDGED_AT + 1, to: ACKNOWLEDGED_AT + 5000 };

describe('an older record', () => {
  test('is right until the acknowledgement, and wrong after it', () => {
    expect(faultIn({}, { askedAt: ACKNOWLEDGED_AT - 1 })).toBeUndefined();
    expect(faultIn({}, { askedAt: ACKNOWLEDGED_AT })).toBe(WRONG);
    expect(faultIn({}, { number: 1 })).toBeUndefined();
  });

  test('is never excused at the writer', () => {
    const by = { ...reader, name: 'a1' };
    expect(faultIn({ trouble: DURING }, { by })).toBe(WRONG);
    expect(faultIn({ trouble: DURING }, { by, ...STALE })).toBe(WRONG);
  });
});

describe('an older record that is not marked stale', () => {
  test('is excused for the maximum age if Redis was in trouble during the change', () => {
    const lastAt = ACKNOWLEDGED_AT + MAX_AGE_MS;
    expect(faultIn({ trouble: DURING }, { askedAt: lastAt - 1 })).toBeUndefined();
    expect(faultIn({ trouble: DURING }, { askedAt: lastAt })).toBe(WRONG);
  });

  test.each([
    ['before the change', BEFORE],
    ['after the acknowledgement', AFTER],
  ])('is wrong if Redis was in trouble only %s', (_when, trouble) => {
    expect(faultIn({ trouble }, {})).toBe(WRONG);
  });

  test('is wrong at a frozen proxy, and at a proxy that was down', () => {
    const freeze = { from: STARTED_AT, to: ACKNOWLEDGED_AT + 5000 };
    expect(faultIn({ freeze }, {})).toBe(WRONG);
    expect(faultIn({}, { by: restarted(ACKNOWLEDGED_AT + 50) })).toBe(WRONG);
  });

  test('is excused until the TTL ends if the writer was killed in the same trouble', () => {
    const lost = { trouble: DURING, killedAt: ACKNOWLEDGED_AT + 1000 };
    const lastAt = ACKNOWLEDGED_AT + TTL_MS;
    expect(faultIn(lost, { askedAt: lastAt - 1 })).toBeUndefined();
    expect(faultIn(lost, { askedAt: lastAt })).toBe(WRONG);
  });

  test.each([
    ['the trouble had ended', { trouble: DURING, killedAt: DURING.to + 1 }],
    ['the trouble began after the acknowledgement', { trouble: AFTER, killedAt: AFTER.to }],
  ])('is wrong after the maximum age if the writer was killed, but %s', (_what, world) => {
    expect(faultIn(world, { askedAt: ACKNOWLEDGED_AT + MAX_AGE_MS })).toBe(WRONG);
  });

  test('is always wrong in the strict mode', () => {
    const isStrict = true;
    expect(faultIn({ isStrict, trouble: DURING }, {})).toBe(WRONG);
    expect(faultIn({ isStrict, trouble: DURING, killedAt: ACKNOWLEDGED_AT + 1 }, {})).toBe(WRONG);
  });
});

/** Returns a life of a proxy that was killed before the change, and joined again at the given time. */
function restarted(joinedAt: number | undefined): Reader {
  const before = { ...reader, killedAt: STARTED_AT };
  return { name: 'b2', before, ...(joinedAt !== undefined && { joinedAt }) };
}

describe.each([['default'], ['strict']])('an older record that is marked stale, in the %s mode', (mode) => {
  const isStrict = mode === 'strict';

  test('is wrong without a fault', () => {
    expect(faultIn({ isStrict }, STALE)).toBe(WRONG);
  });

  test('is excused without a time limit if Redis was in trouble during the change', () => {
    const late = { ...STALE, askedAt: ACKNOWLEDGED_AT + 10 * TTL_MS };
    expect(faultIn({ isStrict, trouble: DURING }, late)).toBeUndefined();
    expect(faultIn({ isStrict, trouble: BEFORE }, late)).toBe(WRONG);
    expect(faultIn({ isStrict, trouble: AFTER }, late)).toBe(WRONG);
  });

  test('is excused if the proxy was down, or had not joined, at the acknowledgement', () => {
    const fault = (by: Reader) => faultIn({ isStrict }, { ...STALE, by });
    expect(fault(restarted(undefined))).toBeUndefined();
    expect(fault(restarted(ACKNOWLEDGED_AT))).toBeUndefined();
    expect(fault(restarted(ACKNOWLEDGED_AT - 1))).toBe(WRONG);
    const again = { name: 'b3', before: { ...restarted(ACKNOWLEDGED_AT), killedAt: ACKNOWLEDGED_AT + 10 } };
    expect(fault({ ...again, joinedAt: ACKNOWLEDGED_AT + 20 })).toBeUndefined();
  });

  test('is wrong if the proxy was killed only after the acknowledgement', () => {
    const before = { ...reader, killedAt: ACKNOWLEDGED_AT + 1 };
    expect(faultIn({ isStrict }, { ...STALE, by: { name: 'b2', before } })).toBe(WRONG);
  });

  test('is excused at a frozen proxy until it has read its backlog', () => {
    const freeze = { from: STARTED_AT, to: ACKNOWLEDGED_AT + 3000 };
    expect(faultIn({ isStrict, freeze }, { ...STALE, askedAt: freeze.to - 1 })).toBeUndefined();
    expect(faultIn({ isStrict, freeze }, { ...STALE, askedAt: freeze.to })).toBe(WRONG);
    const by = { ...reader, name: 'c1' };
    expect(faultIn({ isStrict, freeze }, { ...STALE, by })).toBe(WRONG);
    expect(faultIn({ isStrict, freeze: { from: ACKNOWLEDGED_AT + 1, to: freeze.to } }, STALE)).toBe(WRONG);
  });

  test('is excused at a thawed proxy if Redis failed while the message waited', () => {
    const freeze = { from: STARTED_AT, to: ACKNOWLEDGED_AT + 3000 };
    const late = { ...STALE, askedAt: freeze.to + 1000 };
    expect(faultIn({ isStrict, freeze, trouble: AFTER }, late)).toBeUndefined();
    expect(faultIn({ isStrict, freeze, trouble: { ...AFTER, from: freeze.to + 1 } }, late)).toBe(WRONG);
  });
});
