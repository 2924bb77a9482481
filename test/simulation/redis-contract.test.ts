// The simulated Redis: it gives the replies of a real Redis, and stores the same data.
import { fc, test as property } from '../support/property.js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis-server.js';
import { type Step, commands, scriptCalls } from './redis-arbitraries.js';
import { RedisPair, rough } from './redis-pair.js';
import { rounds } from '../support/property-rounds.js';
import { unicodeTexts } from '../support/code-points.js';

describeWithRedis('simulated and real Redis', () => {
  let pair: RedisPair;
  beforeAll(async () => {
    pair = await RedisPair.start();
  });
  afterAll(() => pair.stop());
  beforeEach(() => pair.run('FLUSHALL'));

  /** Runs all steps on both servers, and compares every reply. @returns the last reply */
  async function bothAnswer(steps: readonly Step[]): Promise<unknown> {
    await pair.run('FLUSHALL');
    let last: unknown;
    for (const [index, [name, ...args]] of steps.entries()) {
      const { simulated, real } = await pair.run(name, ...args);
      expect([index, name, rough(simulated)]).toEqual([index, name, rough(real)]);
      last = simulated;
    }
    const state = await pair.state();
    expect(state.simulated).toEqual(state.real);
    return last;
  }

  const lua = (source: string, keys: string[] = [], args: string[] = []): Promise<unknown> =>
    bothAnswer([['EVAL', source, String(keys.length), ...keys, ...args]]);

  property.prop([fc.array(commands, { minLength: 10, maxLength: 40 })], { numRuns: rounds(200) })(
    'give equal replies to any commands',
    async (steps) => {
      await bothAnswer(steps);
    },
  );

  property.prop([fc.array(scriptCalls, { minLength: 5, maxLength: 30 })], { numRuns: rounds(200) })(
    "give equal replies to the cache's scripts",
    async (steps) => {
      await bothAnswer(steps);
    },
  );

  property.prop(
    [fc.double({ noNaN: true }), fc.double({ noNaN: true }), fc.constantFrom('+', '-', '*', '/', '%', '^')],
    {
      numRuns: rounds(200),
    },
  )('calculate and print numbers identically', async (a, b, operator) => {
    await lua(
      `local number = ARGV[1] ${operator} ARGV[2]
       if number ~= number then return 'not a number' end
       redis.call('SET', KEYS[1], number)
       return { tostring(number), number .. '', string.format('%.3f %5.1e', number, number) }`,
      ['key'],
      [String(a), String(b)],
    );
  });

  // ioredis rounds integers within 50 of the largest safe one; no number of the scripts is as large.
  const integers = fc.integer({ min: -(2 ** 53 - 64), max: 2 ** 53 - 64 });

  property.prop([integers, fc.double({ noNaN: true, min: -1e15, max: 1e15 })])(
    'truncate numbers in script results to integers',
    async (whole, real) => {
      await lua('return { tonumber(ARGV[1]), tonumber(ARGV[2]), -0.5 }', [], [String(whole), String(real)]);
    },
  );

  property.prop([fc.integer(), fc.double({ noNaN: true }), unicodeTexts({ maxLength: 10 })])(
    'pack and unpack numbers and strings identically',
    async (whole, real, text) => {
      const args = [String(whole), String(real), Buffer.from(text).toString('latin1')];
      await lua(
        `local packed = struct.pack('>i4<I8d>fhbc0s', ARGV[1], ARGV[1], ARGV[2], ARGV[2], ARGV[1] % 100, 7, ARGV[3], 'end')
         local a, b, c = struct.unpack('>i4<i8d', packed)
         return { packed, a, b, tostring(c), struct.size('>i4<I8dfhb') }`,
        [],
        args,
      );
    },
  );

  property.prop([fc.integer(), fc.integer(), fc.nat({ max: 40 })])(
    'combine and shift bits identically',
    async (a, b, count) => {
      await lua(
        `local a, b, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
       return { bit.band(a, b), bit.bor(a, b), bit.bxor(a, b, count), bit.bnot(a), bit.lshift(a, count),
         bit.rshift(a, count), bit.arshift(a, count), bit.rol(a, count), bit.ror(a, count), bit.bswap(a),
         bit.tobit(a * 3), bit.tohex(a), bit.tohex(b, -4) }`,
        [],
        [String(a), String(b), String(count)],
      );
    },
  );

  property.prop([
    fc.array(
      fc.oneof(
        fc.integer(),
        fc.boolean(),
        fc.string({ unit: 'grapheme-ascii' }),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
      ),
    ),
  ])('read and write JSON identically', async (items) => {
    const json = Buffer.from(JSON.stringify({ items })).toString('latin1');
    fc.pre(!json.includes('\\u'));
    await lua('return cjson.encode(cjson.decode(ARGV[1]).items)', [], [json]);
  });

  test.each([
    ['a table ends at its first nil', 'return { 1, nil, 3 }', [1]],
    ['true is 1 and false is nil', 'return { true, false, 2 }', [1, null, 2]],
    ['nil is nil', 'return nil', null],
    ['a missing return value is nil', 'local a = 1', null],
    ['a nil reply is false', "return redis.call('GET', 'nothing') == false", 1],
    ['a status is a table', "return redis.call('SET', 'a', 'b').ok", 'OK'],
    ['a status can be returned', "return redis.status_reply('FINE')", 'FINE'],
    ['tables may contain tables', 'return { { 1, { 2 } }, {} }', [[1, [2]], []]],
    ['numeric strings can be added', "return '10' + 5", 15],
    [
      'large numbers are printed with 14 digits',
      'return tostring(1e15) .. 2 ^ 53',
      '1e+159.007199254741e+15',
    ],
    ['strings may contain any byte', "return string.char(0, 255, 10) .. '\\0'", '\0\xff\n\0'],
    ['strings are compared by bytes', "return { 'a' < 'b', 'Z' < 'a', '10' < '9' }", [1, 1, 1]],
    ['a command name may be in any letter case', "return redis.call('sEt', 'a', 1.5)", 'OK'],
    ['SHA-1 sums are equal', "return redis.sha1hex('abc')", 'a9993e364706816aba3e25717850c26c9cd0d89d'],
    [
      'an error can be caught with redis.pcall',
      "return redis.pcall('INCR', 'a', 'b').err",
      'ERR Wrong number of args calling Redis command from script',
    ],
    [
      'an error can be caught with pcall',
      "redis.call('SET', 'a', 'b') local ok = pcall(redis.call, 'INCR', 'a') return ok",
      null,
    ],
    [
      'an error ends the script',
      "redis.call('SET', 'a', 'b') redis.call('HGET', 'a', 'b') redis.call('DEL', 'a')",
      'error WRONGTYPE',
    ],
    ['a Lua error ends the script', "error('what')", 'error ERR'],
    ['a custom error has its own code', "return { err = 'MINE is this' }", 'error MINE'],
    ['a custom error may have no code', "return redis.error_reply('oops')", 'error ERR'],
    ['an error may be a table', "error({ err = 'MINE is this' })", 'error MINE'],
    ['globals cannot be created', 'a = 1', 'error ERR'],
    ['undefined globals cannot be read', 'return a', 'error ERR'],
    ['a script with a syntax error is rejected', 'return return', 'error ERR'],
    ['a table is not a valid argument', "return redis.call('SET', 'a', {})", 'error ERR'],
    ['a call without a command fails', 'return redis.call()', 'error ERR'],
    ['a script cannot run a script', "return redis.call('EVAL', 'return 1', 0)", 'error ERR'],
    ['files cannot be read', "return dofile('a')", 'error ERR'],
    ['the length of a reply includes its nil members', "return #redis.call('HMGET', 'a', 'b', 'c')", 2],
    [
      'INFO contains a run id of 40 digits',
      "return #string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')",
      40,
    ],
    [
      'TIME has two parts',
      "local t = redis.call('TIME') return { type(t[1]), type(t[2]), #t }",
      ['string', 'string', 2],
    ],
    ['string patterns match', "return { string.gsub('a1b22', '%d+', '<%0>') }", ['a<1>b<22>', 2]],
    ['tables are sorted', 'local t = { 3, 1, 2 } table.sort(t) return table.concat(t, ",")', '1,2,3'],
  ])('agree in scripts: %s', async (_, source, answer) => {
    expect(await lua(source)).toEqual(answer);
  });

  test('know a script by its SHA-1 after its first run', async () => {
    const sha = 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db';
    expect(await bothAnswer([['EVALSHA', 'f'.repeat(40), '0']])).toBe('error NOSCRIPT');
    expect(
      await bothAnswer([
        ['EVAL', 'return 1', '0'],
        ['EVALSHA', sha, '0'],
      ]),
    ).toBe(1);
    expect(await bothAnswer([['EVALSHA', sha.toUpperCase(), '0']])).toBe(1);
    expect(await bothAnswer([['SCRIPT', 'LOAD', 'return 1']])).toBe(sha);
  });

  test('reject a script with an invalid key count', async () => {
    expect(await bothAnswer([['EVAL', 'return 1', '2', 'a']])).toBe('error ERR');
    expect(await bothAnswer([['EVAL', 'return 1', '-1']])).toBe('error ERR');
    expect(await bothAnswer([['EVAL', 'return 1', 'a']])).toBe('error ERR');
  });

  test('agree on which scripts run when memory is full', async () => {
    await pair.run('SET', 'a', '1');
    await pair.real.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    pair.simulated.isFull = true;
    const answers = [];
    for (const source of [
      "return redis.call('SET', KEYS[1], 'b')",
      "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], 'b') return redis.call('GET', KEYS[1])",
      "return redis.pcall('HSET', 'h', 'f', 'v').err",
      "return redis.call('PEXPIRE', KEYS[1], 100000)",
    ]) {
      const { simulated, real } = await pair.run('EVAL', source, '1', 'a');
      expect(simulated).toEqual(real);
      answers.push(simulated);
    }
    const { simulated, real } = await pair.run('SET', 'c', 'd');
    await pair.real.config('SET', 'maxmemory', '0');
    pair.simulated.isFull = false;
    expect(simulated).toEqual(real);
    expect(answers[1]).toBe('b');
  });
});
