// Allowed imports between modules, enforced by `npm run lint`.
const FILES = ['errors', 'maybe', 'clock', 'time-slicer', 'context', 'hooks', 'host', 'plugin'];
// Files that contain only types, and describe what any module may use.
const TYPES = ['config/live', 'config/schema', 'config/upstream-servers', 'context', 'host', 'plugin'].map(
  (name) => `^src/${name}\\.ts$`,
);
const KERNEL = ['errors', 'maybe', 'clock', 'handle', 'time-slicer', 'context', 'hooks'];
const INTERFACE = ['write', 'http', 'html', 'resolver', 'cache', 'upstream', ...KERNEL];
const APP = ['record', 'v2', 'redirect', 'plugins', 'server', 'config', 'observe', ...INTERFACE];
const modules = {
  errors: [],
  context: ['clock', 'hooks', 'observe'],
  hooks: ['errors', 'handle', 'config', 'observe', 'cache', 'upstream', 'http', 'redirect'],
  host: [
    'cache',
    'config',
    'context',
    'http',
    'observe',
    'resolver',
    'server',
    'time-slicer',
    'upstream',
    'write',
  ],
  plugin: ['config', 'errors', 'hooks', 'host', 'http', 'observe', 'record', 'upstream'],
  maybe: [],
  clock: [],
  'time-slicer': [],
  handle: ['errors', 'time-slicer'],
  config: KERNEL,
  observe: ['config', ...KERNEL],
  cache: ['config', ...KERNEL],
  upstream: ['config', ...KERNEL],
  resolver: ['cache', 'upstream', ...KERNEL],
  server: ['http', ...KERNEL],
  http: ['resolver', 'cache', 'upstream', 'observe', ...KERNEL],
  html: ['http', ...KERNEL],
  plugins: [
    'redirect',
    'html',
    'write',
    'server',
    'http',
    'resolver',
    'cache',
    'config',
    'upstream',
    'observe',
    ...KERNEL,
  ],
  write: ['http', 'resolver', 'cache', 'upstream', ...KERNEL],
  record: ['write', 'http', 'resolver', 'cache', 'upstream', 'server', 'observe', ...KERNEL],
  v2: ['write', 'http', 'server', 'resolver', 'cache', 'upstream', ...KERNEL],
  redirect: ['http', 'html', 'resolver', 'cache', 'upstream', ...KERNEL],
  app: APP,
  'dev-server': ['config', ...KERNEL],
  cli: ['dev-server', 'app', 'plugins', 'upstream', 'config', ...KERNEL],
};

const pathOf = (name) => (FILES.includes(name) ? `^src/${name}\\.ts$` : `^src/${name}/`);

const arrows = Object.entries(modules).flatMap(([name, may]) => {
  const arrow = { severity: 'error', from: { path: pathOf(name) } };
  const allowed = [name, ...may].map(pathOf);
  const label = `${name}-imports-only-${may.join('-') || 'itself'}`;
  return [
    { name: label, ...arrow, to: { path: '^src/', pathNot: [...allowed, ...TYPES] } },
    {
      name: `${label}-and-types`,
      ...arrow,
      to: { path: TYPES, pathNot: allowed, dependencyTypesNot: ['type-only'] },
    },
  ];
});

// The cache's public files, then its internal files by the module that may import them.
const CACHE = ['cache', 'store', 'entry', 'policy', 'prepared-cache', 'bounded-map'];
const INSIDE_CACHE = {
  write: ['redis/commands', 'coherence/lease'],
  v2: ['redis/commands'],
  plugins: ['redis/commands', 'redis/errors'],
  app: ['redis/connections', 'redis/errors', 'redis/namespace', 'redis/probe'],
};
const notInCache = (from, files) => ({
  severity: 'error',
  from,
  to: { path: '^src/cache/', pathNot: `^src/cache/(${files.join('|')})\\.ts$` },
});
const cacheFiles = [
  {
    name: 'only-public-files-of-cache',
    ...notInCache({ path: '^src/', pathNot: `^src/(cache|${Object.keys(INSIDE_CACHE).join('|')})/` }, CACHE),
  },
  ...Object.entries(INSIDE_CACHE).map(([name, files]) => ({
    name: `${name}-imports-listed-files-of-cache`,
    ...notInCache({ path: pathOf(name) }, [...CACHE, ...files]),
  })),
];
// Import order inside the cache: link → redis → coherence, memory → coherence.
const inCache = (folder, may) => ({
  name: `cache-${folder}-imports-only-${may.join('-') || 'itself'}`,
  severity: 'error',
  from: { path: `^src/cache/${folder}/` },
  to: { path: '^src/cache/.+/', pathNot: [folder, ...may].map((each) => `^src/cache/${each}/`) },
});

const onlyIn = (library, folders) => ({
  name: `${library}-only-in-${folders.join('-')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: folders.map(pathOf) },
  to: { path: `node_modules/${library}/` },
});

module.exports = {
  forbidden: [
    // A plugin uses what its plugin.ts declares, which imports the plugin dynamically.
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['dynamic-import'] } },
    },
    {
      name: 'no-plugin-imports-another',
      severity: 'error',
      from: { path: '^src/plugins/([^/]+)/' },
      to: { path: '^src/plugins/', pathNot: '^src/plugins/$1/' },
    },
    {
      name: 'only-the-list-imports-plugins',
      severity: 'error',
      from: { pathNot: ['^src/plugins/', '^src/app/plugins\\.ts$', '^src/cli/'] },
      // The commands import the code that they share with a plugin.
      to: { path: '^src/plugins/', dependencyTypesNot: ['type-only'] },
    },
    ...arrows,
    ...cacheFiles,
    inCache('coherence', []),
    inCache('memory', ['coherence']),
    inCache('redis', ['coherence']),
    inCache('link', ['redis', 'coherence']),
    onlyIn('express', ['http', 'server', 'record', 'v2', 'redirect', 'html', 'plugins']),
    onlyIn('http-proxy-middleware', ['upstream']),
    onlyIn('ioredis', ['cache', 'write']),
    onlyIn('lru-cache', ['cache', 'write', 'resolver', 'plugins', 'cli', 'dev-server']),
    onlyIn('undici', ['upstream', 'cli', 'plugins/referrals']),
    onlyIn('ipaddr.js', ['plugins']),
    onlyIn('negotiator', ['http']),
    onlyIn('proxy-addr', ['http']),
    onlyIn('maxmind', ['plugins']),
    onlyIn('pino', ['observe']),
    onlyIn('commander', ['cli']),
    onlyIn('prom-client', ['observe']),
    onlyIn('zod', ['config', 'http', 'record', 'v2', 'redirect', 'plugins']),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node'] },
  },
};
