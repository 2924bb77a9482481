// What the mutation figures are about: sources, and the tests of their modules, which need no server and always end
// the same. So a figure is what these tests notice without those over HTTP.

export const AREAS = {
  policy: {
    sources: ['src/cache/policy.ts'],
    tests: ['test/property/lifetime', 'test/unit/resolver', 'test/cache/'],
  },
  coherence: { sources: ['src/cache/coherence/'], tests: ['test/cache/'] },
  'v2 translation': { sources: ['src/v2/translation/'], tests: ['test/unit/v2-', 'test/property/v2-'] },
  preconditions: { sources: ['src/http/preconditions.ts'], tests: ['test/unit/preconditions'] },
  'write decisions': { sources: ['src/write/decisions.ts'], tests: ['test/unit/write-'] },
};
