// The limits of JSON hold exactly when a count over the tree says so, for any names, nesting and white space.
import { describe, expect } from 'vitest';
import { JsonLimitError, parseJson, parseWithin } from '../../src/handle/json.js';
import { fc, test } from '../support/property.js';
import { handleServerRecordings } from '../support/recordings.js';

/** JSON as a tree, because objects of JavaScript keep neither repeated names nor the order of numeric ones. */
type Tree = string | { list: Tree[] } | { members: [name: string, value: Tree][] };

const scalar = fc.oneof(
  fc.constantFrom('0', '-1.5e3', 'true', 'null', '""', '"[{,\\""', '"\\\\"'),
  fc.string({ maxLength: 12 }).map((text) => JSON.stringify(text)),
);
const name = fc.oneof(
  fc.constantFrom('"a"', '"b"', '"1"', '"__proto__"', '"\\u0061"', '"{,"', '""'),
  fc.string({ maxLength: 3 }).map((text) => JSON.stringify(text)),
);
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 8, withCrossShrink: true },
    scalar,
    fc.record({ list: fc.array(tie('tree'), { maxLength: 12 }) }),
    fc.record({ members: fc.array(fc.tuple(name, tie('tree')), { maxLength: 12 }) }),
  ),
}));
const space = fc.constantFrom('', ' ', '\n\t');

/** `suffix` is added to each name, so that copies of a tree have different names. */
function write(node: Tree, gap: string, suffix: string): string {
  if (typeof node === 'string') return `${gap}${node}${gap}`;
  if ('list' in node) return `${gap}[${node.list.map((each) => write(each, gap, suffix)).join()}${gap}]`;
  const members = node.members.map(
    ([key, value]) => `${gap}${key.slice(0, -1)}${suffix}"${gap}:${write(value, gap, suffix)}`,
  );
  return `{${members.join()}${gap}}`;
}

interface Counts {
  levels: number;
  longestList: number;
  values: number;
  elements: number;
  shapes: Set<string>;
}

const NOTHING: Counts = {
  levels: 0,
  longestList: 0,
  values: 0,
  elements: 0,
  shapes: new Set(),
};

const isBare = (node: Tree): boolean => typeof node === 'string' && !node.startsWith('"');

function count(node: Tree): Counts {
  if (typeof node === 'string') return NOTHING;
  const isList = 'list' in node;
  const names = isList ? [] : node.members.map(([key]) => key);
  const children = isList ? node.list : node.members.map(([, value]) => value);
  const own: Counts = {
    levels: 1 + Math.max(0, ...children.map((each) => count(each).levels)),
    longestList: isList ? children.length : 0,
    // The opening bracket, and the commas.
    values: Math.max(1, children.length),
    elements: 1 + (isList ? children.slice(1).filter(isBare).length : 0),
    shapes: new Set(names.map((_, at) => names.slice(0, at + 1).join())),
  };
  return children.map(count).reduce(
    (sum, each) => ({
      levels: sum.levels,
      longestList: Math.max(sum.longestList, each.longestList),
      values: sum.values + each.values,
      elements: sum.elements + each.elements,
      shapes: new Set([...sum.shapes, ...each.shapes]),
    }),
    own,
  );
}

function isWithin(limits: { elements: number; values: number }, json: string): boolean {
  try {
    expect(parseWithin(limits, json)).toEqual(JSON.parse(json));
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(JsonLimitError);
    return false;
  }
}

describe('limits of JSON', () => {
  const copies = fc.integer({ min: 1, max: 300 });
  const limits = fc.record({
    elements: fc.integer({ min: 1, max: 320 }),
    values: fc.integer({ min: 1, max: 5000 }),
  });

  test.prop([tree, space, copies, limits])('hold like a count over the tree', (node, gap, times, given) => {
    const json = `[${Array.from({ length: times }, (_, at) => write(node, gap, `~${at}`)).join()}]`;
    const { levels, longestList, values, elements, shapes } = count(node);
    const bareAfterFirst = isBare(node) ? times - 1 : 0;
    expect(isWithin(given, json)).toBe(
      levels < 64 &&
        Math.max(times, longestList) <= given.elements &&
        times * (1 + values) <= given.values &&
        1 + bareAfterFirst + times * elements <= 65_536 &&
        times * shapes.size <= 1024,
    );
  });

  test('accept every recorded response of a Handle server, also many times over', () => {
    const bodies = handleServerRecordings.flatMap(({ response: { body } }) =>
      body?.startsWith('{') ? [body] : [],
    );
    expect(bodies.length).toBeGreaterThan(100);
    expect(parseJson(`[${bodies.join()}]`)).toHaveLength(bodies.length);
  });
});
