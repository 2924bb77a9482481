// Nested keys as they come out of a YAML file or the environment, before anyone has checked them.

export type Tree = Record<string, unknown>;

/** True for a mapping of keys, false for lists, texts and everything else. */
export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path such as `cache.found.maxTtl`. */
export function valueAt(tree: unknown, key: string): unknown {
  return key
    .split('.')
    .reduce<unknown>((at, name) => (isTree(at) && Object.hasOwn(at, name) ? at[name] : undefined), tree);
}

/**
 * A copy with one value set. A text or list where a section belongs stays as it is, so that it is
 * reported instead of silently replaced.
 */
export function withValue(tree: unknown, [name, ...rest]: string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (tree !== undefined && !isTree(tree)) return tree;
  return { ...tree, [name]: withValue(tree?.[name], rest, value) };
}

/** A copy in which a key without a value (`url:`) counts as not set, as an empty variable does. */
export function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (!isTree(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutNulls(inner)]));
}
