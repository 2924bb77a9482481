// Redis scripts for bans and members.
import { partial } from '../support/partial.js';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { MAX_LISTED_BANS } from '../../src/cache/coherence/bans.js';
import { MAX_DRIFT, MAX_RENEWAL_DELAY_MS, MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import type { Change } from '../../src/cache/coherence/message.js';
import { asStale } from '../../src/cache/entry.js';
import { ASSERT_MAY_PUBLISH } from '../../src/cache/redis/coherence-scripts.js';
import { PREFIX, type ScriptClient, describeScripts, runNamed } from '../support/script-client.js';
import { entryOf } from '../support/store-contract.js';

const KEY = '21.T1/KEY';
const ban = (prefix: string, isSoft = false): Change => ({ kind: 'ban', prefix, isSoft, number: 0 });

/** Asserts the rights of the user as on Redis 8 since March 2026, which refuses a wrong number of arguments. */
const ASSERT_STRICTLY = `
local given = redis
local redis = setmetatable({
  acl_check_cmd = function(command, ...)
    local arity, count = given.call('COMMAND', 'INFO', command)[1][2], 1 + select('#', ...)
    if count < math.abs(arity) or (arity > 0 and count > arity) then
      error({ err = 'ERR Wrong number of args for redis.acl_check_cmd()' })
    end
    return given.acl_check_cmd(command, ...)
  end,
}, { __index = given })
${ASSERT_MAY_PUBLISH}
assertMayPublish('PUBLISH', 'channel')
return 'may'`;

type One = ReturnType<ScriptClient['members']>;
type Three = [One, One, One];

describeScripts('Redis scripts for bans and members', (world) => {
  test('list bans up to a maximum, above a floor set by the last dropped ban', async () => {
    const numbers: number[] = [];
    for (let at = 0; at <= MAX_LISTED_BANS; at++)
      numbers.push(await world.scripts.publish(ban(`21.T1/${at} `, at % 2 === 1)));
    const { bans: known } = await world.scripts.enter('', 'era');
    expect(known.floor).toBe(numbers[0]);
    expect(known.bans).toHaveLength(MAX_LISTED_BANS);
    expect(known.bans).toContainEqual({ number: numbers[1], prefix: '21.T1/1 ', isSoft: true });
    expect(known.bans).toContainEqual({ number: numbers[2], prefix: '21.T1/2 ', isSoft: false });
  });

  test('count the ban of a new era towards the maximum', async () => {
    await world.scripts.enter('', 'one');
    const first = await world.scripts.publish(ban('21.T1/first'));
    for (let at = 1; at < MAX_LISTED_BANS; at++) await world.scripts.publish(ban(`21.T1/${at} `));
    const { bans: known } = await world.scripts.enter('at another server', 'two');
    expect(known.floor).toBe(first);
    expect(known.bans).toHaveLength(MAX_LISTED_BANS);
    expect(known.bans).toContainEqual({ number: known.seq, prefix: '', isSoft: true });
  });

  test('return no entry that was loaded before a ban', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    world.scripts.bans.add({
      number: await world.scripts.publish(ban('21.T1/')),
      prefix: '21.T1/',
      isSoft: false,
    });
    expect(await world.scripts.read(KEY)).toBeUndefined();
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(true);
    expect(await world.scripts.read(KEY)).toEqual(entryOf('new'));
  });

  test('reject a load that started before a ban', async () => {
    const ticket = await world.scripts.ticket(KEY);
    world.scripts.bans.add({
      number: await world.scripts.publish(ban('21.T1/')),
      prefix: '21.T1/',
      isSoft: true,
    });
    expect(world.scripts.store.accepts(KEY, ticket)).toBe(false);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
  });

  test('keep members of one era together in the next era', async () => {
    expect((await world.scripts.enter('elsewhere', 'one')).era).toBe('one');
    expect((await world.scripts.enter('elsewhere', 'two')).era).toBe('one');
    expect((await world.scripts.enter('', 'three')).era).toBe('one');
    expect(await world.scripts.enter('one', 'four')).toMatchObject({ era: 'one', bans: { bans: [] } });
  });

  test('start an era with every earlier entry stale when a member joins from an unknown era', async () => {
    await world.scripts.enter('', 'one');
    await world.scripts.put(KEY, entryOf('old'));
    const { era, bans } = await world.scripts.enter('at another server', 'two');
    expect(era).toBe('two');
    expect(bans.bans).toEqual([{ number: bans.seq, prefix: '', isSoft: true }]);
    for (const each of bans.bans) world.scripts.bans.add(each);
    expect(await world.scripts.read(KEY)).toEqual(asStale(entryOf('old')));
    // Other members from either server join that era.
    for (const from of ['one', 'at another server', 'two'])
      expect((await world.scripts.enter(from, 'three')).era).toBe('two');
  });

  test('notify listening members of a new era', async () => {
    await world.scripts.enter('', 'one');
    const listener = new Redis(world.redis.url);
    const heard = new Promise((resolve) =>
      listener.once('message', (_channel, text) => {
        resolve(text);
      }),
    );
    await listener.subscribe(`${PREFIX}messages`);
    const { bans } = await world.scripts.enter('at another server', 'two');
    expect(await heard).toBe(`${bans.seq} me - ban soft 0 `);
    listener.disconnect();
  });

  test('discard the eras from the previous server run', async () => {
    await world.scripts.enter('', 'one');
    world.scripts.run = runNamed('next');
    expect((await world.scripts.enter('one', 'two')).era).toBe('two');
  });

  test('let a leased member vouch for a different member while its membership lasts', async () => {
    const [one, other] = [world.scripts.members('one'), world.scripts.members('other')];
    await one.renew();
    expect(await other.renew()).toMatchObject({ isVouched: false });
    await one.renew({ lease: 'new' });
    expect(await other.renew()).toMatchObject({ isVouched: true });
    expect(await one.renew({ lease: 'new' })).toMatchObject({ isVouched: false });
    await world.client.zadd(`${PREFIX}members`, '1.5', 'one');
    expect(await other.renew()).toMatchObject({ isVouched: false });
  });

  test('report a member as absent, then as listed, and as lapsed after its membership has ended', async () => {
    const [one, other] = [world.scripts.members('one'), world.scripts.members('other')];
    expect(await one.renew()).toMatchObject({ was: 'absent', count: 1, lapsed: [] });
    expect(await one.renew({ joins: false })).toMatchObject({ was: 'listed', count: 1 });
    expect(await other.renew()).toMatchObject({ was: 'absent', count: 2 });
    await world.client.zadd(`${PREFIX}members`, 1, 'one');
    expect(await other.renew({ joins: false })).toMatchObject({ lapsed: ['one'] });
    expect(await one.renew({ joins: false })).toMatchObject({ was: 'lapsed', lapsed: [] });
  });

  test('ignore a renewal that Redis executes long after it was sent', async () => {
    let time = 10_000;
    const one = world.scripts.members('one', partial({ monotonic: () => time }));
    await one.renew();
    const end = await world.client.zscore(`${PREFIX}members`, 'one');
    time -= MAX_DRIFT * MAX_RENEWAL_DELAY_MS + 1;
    await expect(one.renew()).rejects.toThrow('the renewal reached Redis too late');
    expect(await world.client.zscore(`${PREFIX}members`, 'one')).toBe(end);
    time -= MAX_DRIFT * 500;
    expect((await one.renew()).was).toBe('listed');
  });

  test('count a member as lapsed for one without a lease once half of its membership is over', async () => {
    const [one, other] = [world.scripts.members('one'), world.scripts.members('other')];
    await one.renew();
    await other.renew();
    const [seconds, micros] = (await world.client.time()) as unknown as [string, string];
    const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    const endAfter = (ms: number) => world.client.zadd(`${PREFIX}members`, `${now + ms}.5`, 'one');
    await endAfter(MEMBERSHIP_MS / 2 - 1);
    expect(await other.renew()).toMatchObject({ lapsed: ['one'], isVouched: false });
    await endAfter(MEMBERSHIP_MS / 2 + 900);
    expect(await other.renew()).toMatchObject({ lapsed: [], isVouched: true });
    await endAfter(MEMBERSHIP_MS / 2 - 1);
    expect(await other.renew({ lease: 'new' })).toMatchObject({ lapsed: [] });
  });

  test('leave an absent member absent unless it joins', async () => {
    expect((await world.scripts.members('one').renew({ joins: false })).was).toBe('absent');
    expect((await world.scripts.members('one').renew({ joins: false })).was).toBe('absent');
    expect(await world.client.zscore(`${PREFIX}members`, 'one')).toBeNull();
  });

  test('end a membership by the Redis clock', async () => {
    await world.scripts.members('one').renew();
    const [seconds, micros] = (await world.client.time()) as unknown as [string, string];
    const ends = Number(await world.client.zscore(`${PREFIX}members`, 'one'));
    const leftMs = ends - Number(seconds) * 1000 - Number(micros) / 1000;
    expect(leftMs).toBeLessThanOrEqual(MEMBERSHIP_MS);
  });

  test('report an expelled member to itself as absent, and let it join again', async () => {
    const [one, deaf] = [world.scripts.members('one'), world.scripts.members('deaf')];
    await one.renew();
    await deaf.renew();
    await one.expel(['deaf']);
    expect((await deaf.renew({ joins: false })).was).toBe('absent');
    expect((await one.renew()).lapsed).toEqual(['deaf']);
    expect(await deaf.renew()).toMatchObject({ was: 'absent', lapsed: [] });
    expect((await deaf.renew({ joins: false })).was).toBe('listed');
    expect((await one.renew()).lapsed).toEqual([]);
  });

  test('report an expelled member to others as lapsed, and wait for its membership to end', async () => {
    const [one, other, deaf] = ['one', 'other', 'deaf'].map((id) => world.scripts.members(id)) as Three;
    for (const each of [one, other, deaf]) await each.renew();
    await one.expel(['deaf', 'unheard']);
    const before = await one.others();
    expect([...before.ends.keys()].sort()).toEqual(['deaf', 'other']);
    await other.expel(['deaf']);
    expect((await one.others()).ends.get('deaf')).toBe(before.ends.get('deaf'));
    expect(await one.renew({ lease: 'long' })).toMatchObject({ lapsed: ['deaf'] });
    expect(await other.renew()).toMatchObject({ lapsed: ['deaf'] });
    const expelledAt = -Number(before.ends.get('deaf'));
    await world.client.zadd(`${PREFIX}members`, -(expelledAt - MEMBERSHIP_MS - 60_000), 'deaf');
    expect(await one.renew({ lease: 'long' })).toMatchObject({ lapsed: ['deaf'] });
    expect([...(await one.others()).ends.keys()]).toEqual(['other']);
  });

  test('remove a long-lapsed member only during a renewal by a member whose own lease has lasted long', async () => {
    const one = world.scripts.members('one');
    await one.renew();
    const [seconds] = (await world.client.time()) as unknown as [string];
    const now = Number(seconds) * 1000;
    await world.client.zadd(
      `${PREFIX}members`,
      now - 1000,
      'just now',
      now - MEMBERSHIP_MS - 60_000,
      'long ago',
    );
    const lapsed = ['long ago', 'just now'];
    expect(await one.renew()).toMatchObject({ count: 3, lapsed });
    expect(await one.renew({ lease: 'long' })).toMatchObject({ count: 2, lapsed });
    expect(await one.renew({ lease: 'long' })).toMatchObject({ lapsed: ['just now'] });
  });

  test('discard the member list from a previous server run, because it may be incomplete', async () => {
    const one = world.scripts.members('one');
    await one.renew();
    await world.client.zadd(`${PREFIX}members`, 1, 'brought back');
    world.scripts.run = runNamed('next');
    expect(await one.renew({ joins: false })).toMatchObject({ was: 'absent' });
    expect(await one.renew()).toMatchObject({ was: 'absent', count: 1, lapsed: [] });
    const { ends, incompleteForMs } = await one.others();
    expect([...ends.keys()]).toEqual([]);
    expect(incompleteForMs).toBeGreaterThan(0);
  });

  test('do not wait for a member whose lease has ended, unless it renews', async () => {
    const [one, frozen] = [world.scripts.members('one'), world.scripts.members('frozen')];
    for (const each of [one, frozen]) await each.renew();
    const before = (await one.others()).ends;
    one.markLeaseEnded('frozen', before.get('frozen') ?? '');
    expect([...(await one.others()).ends.keys()]).toEqual([]);
    await world.client.zadd(`${PREFIX}members`, Date.now() + 60_000, 'frozen');
    expect([...(await one.others()).ends.keys()]).toEqual(['frozen']);
  });

  test('read the rights of the user from a Redis that checks the number of arguments', async () => {
    expect(await world.client.eval(ASSERT_STRICTLY, 1, KEY)).toBe('may');
    await world.client.acl('SETUSER', 'default', '-hgetall');
    await expect(world.client.eval(ASSERT_STRICTLY, 1, KEY)).rejects.toThrow(/^NOPERM .*HGETALL/);
    await world.client.acl('SETUSER', 'default', '+@all');
  });
});
