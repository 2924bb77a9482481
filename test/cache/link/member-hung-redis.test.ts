// A member whose Redis may have hung while a different master served, with a scripted Redis.
import { describe, expect, test } from 'vitest';
import { openMember } from '../../support/linked-member.js';

type Opened = ReturnType<typeof openMember>;

/** Delays the replies to the renewals that are sent from now on. */
function answerAfter({ world, clock }: Opened, ms: number): void {
  world.renewed = new Promise((resolve) => void clock.after(ms, resolve));
}

const entriesOf = ({ world }: Opened): string[] => world.asked.filter((call) => call.startsWith('enter'));

/** Sends two renewals a second apart, while the member waits for a lapsed member. @returns how often it has entered the era */
async function enterWithReplies(firstMs: number, secondMs: number): Promise<number> {
  const opened = openMember();
  const { world, clock, member } = opened;
  world.lapsed = ['gone'];
  await member.renewNow();
  answerAfter(opened, 500 + firstMs);
  await clock.pass(1499);
  answerAfter(opened, 1 + secondMs);
  await clock.pass(1 + secondMs);
  await member.renewNow();
  return entriesOf(opened).length;
}

describe('member with a lease', () => {
  test('remains in its era after the loss of a message connection, so that it keeps its locks', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    const before = member.era();
    await clock.pass(400);
    world.lose();
    await member.renewNow();
    expect(world.asked.filter((call) => call.startsWith('enter'))).toHaveLength(2);
    expect(before).toBeDefined();
    expect(member.era()).toEqual(before);
  });

  test('is in a new era of the same run, as after a flush, since it has entered it', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    await clock.pass(400);
    world.era++;
    world.lose();
    await member.renewNow();
    expect(member.era()?.since).toBe(400);
  });

  test('is in its era only since its return if the lease has ended meanwhile', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(2000);
    world.isConnected = true;
    await member.renewNow();
    expect(member.era()?.since).toBe(2000);
  });
});

describe('member without a lease', () => {
  test('starts over after two slow replies between which Redis may have hung for longer than a lease', async () => {
    expect(await enterWithReplies(900, 1100)).toBe(2);
  });

  test('does not start over after two replies within the time of a lease', async () => {
    expect(await enterWithReplies(900, 900)).toBe(1);
  });

  test('gets no lease if Redis may have hung since it entered the era', async () => {
    const opened = openMember();
    const { world, clock, pending, member } = opened;
    pending.add({ kind: 'forget', key: '21.T1/KEY' });
    world.changed = new Promise((resolve) => {
      clock.after(900, () => {
        answerAfter(opened, 1200);
        resolve();
      });
    });
    const renewed = member.renewNow();
    await clock.pass(2100);
    await renewed;
    expect(entriesOf(opened)).toEqual(['enter from none']);
    expect(world.asked).toContain('numbers');
    expect(member.leaseLeftMs()).toBe(0);
    await clock.pass(400);
    expect(entriesOf(opened)).toHaveLength(2);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });

  test('reads the numbers only after Redis has run the renewal that joins', async () => {
    const opened = openMember();
    const { world, clock, member } = opened;
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(30_000);
    world.isConnected = true;
    Object.assign(world, { was: 'late', asked: [] });
    await member.renewNow();
    expect(world.asked).not.toContain('numbers');
    expect(member.leaseLeftMs()).toBe(0);
    await member.renewNow();
    expect(world.asked).toContain('numbers');
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });
});
