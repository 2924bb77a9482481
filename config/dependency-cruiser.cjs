// The arrows between the folders of src: who may know whom. `npm run lint` holds the code to them.
const rooms = {
  handle: [],
  errors: [],
  config: ['errors', 'handle'],
  observe: ['errors', 'handle', 'config'],
  cache: ['handle', 'errors'],
  upstream: ['handle', 'errors'],
  resolver: ['cache', 'upstream', 'handle', 'errors'],
  http: ['resolver', 'cache', 'upstream', 'handle', 'errors'],
  v2: ['http', 'resolver', 'upstream', 'handle', 'errors'],
  redirect: ['http', 'resolver', 'cache', 'handle', 'errors'],
  openapi: ['admin', 'redirect', 'v2', 'http', 'errors'],
  admin: ['resolver', 'cache', 'observe', 'handle', 'errors'],
  cli: ['handle', 'errors', 'config', 'start'],
  demo: ['handle', 'errors', 'config', 'run', 'serve'],
};

const room = (name) =>
  ['errors', 'app', 'main', 'run', 'serve', 'start'].includes(name) ? `^src/${name}\\.ts$` : `^src/${name}/`;

const arrows = Object.entries(rooms).map(([name, may]) => ({
  name: `${name}-knows-only-${may.join('-') || 'itself'}`,
  severity: 'error',
  from: { path: room(name) },
  to: { path: '^src/', pathNot: [name, ...may].map(room) },
}));

const onlyIn = (library, folders) => ({
  name: `${library}-only-in-${folders.join('-')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: folders.map((folder) => `^src/${folder}/`) },
  to: { path: `node_modules/${library}/` },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...arrows,
    onlyIn('express', ['http', 'v2', 'redirect', 'openapi', 'admin', 'demo']),
    onlyIn('http-proxy-middleware', ['http', 'v2', 'redirect', 'admin', 'demo']),
    onlyIn('ioredis', ['cache']),
    onlyIn('lru-cache', ['cache']),
    onlyIn('undici', ['upstream', 'cli']),
    onlyIn('cockatiel', ['upstream']),
    onlyIn('saxes', ['redirect']),
    onlyIn('pino', ['observe']),
    onlyIn('commander', ['cli']),
    onlyIn('cli-progress', ['cli']),
    onlyIn('prom-client', ['observe']),
    onlyIn('zod', ['config', 'v2', 'openapi', 'admin']),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node'] },
  },
};
