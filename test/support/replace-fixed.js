// Replaces constants in a parsed configuration, in this process and in the built program.

/** @type {(value: unknown) => value is Record<string, unknown>} */
const isTree = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns a copy of `tree` in which the members of `values` replace those with the same path.
 *
 * @type {(tree: unknown, values: unknown) => unknown}
 */
function merged(tree, values) {
  if (!isTree(tree) || !isTree(values)) return values;
  const replaced = Object.entries(values).map(([name, value]) => {
    if (!(name in tree)) throw new Error(`no constant ${name} in the configuration`);
    return /** @type {const} */ ([name, merged(tree[name], value)]);
  });
  return { ...tree, ...Object.fromEntries(replaced) };
}

/**
 * Returns the members of `values` that a server of `upstreams` has.
 *
 * @type {(server: unknown, values: unknown) => unknown}
 */
function ofServer(server, values = {}) {
  if (!isTree(server) || !isTree(values)) return values;
  return Object.fromEntries(Object.entries(values).filter(([name]) => name in server));
}

/**
 * Replaces constants; those of `upstream` also in each server of `upstreams`.
 *
 * @type {(config: { upstreams: readonly unknown[] }, values: { upstream?: unknown }) => unknown}
 */
export function replaceFixed(config, values) {
  const upstreams = config.upstreams.map((server) => merged(server, ofServer(server, values.upstream)));
  return merged({ ...config, upstreams }, values);
}
