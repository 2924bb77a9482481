import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

const undiciHoles = {
  name: 'undici',
  importNames: ['fetch', 'request', 'stream', 'pipeline', 'install'],
  message:
    'These ignore the Dispatcher that is given: send over it (upstream/exchange.ts), so that tests can replace it.',
};

const CONSTRUCTED = ':matches(NewExpression, CallExpression)';

const runtimeExpressions = {
  selector: [
    `${CONSTRUCTED}[callee.name='RegExp'][arguments.0.type!='Literal']`,
    `${CONSTRUCTED}[callee.property.name='RegExp'][arguments.0.type!='Literal']`,
  ].join(),
  message:
    'An expression that is composed at run time may backtrack. Match a pattern of the configuration with compileGlobs (handle/glob.ts).',
};

const BROWSER_GLOBALS = [
  'AbortController',
  'TextDecoderStream',
  'URL',
  'document',
  'fetch',
  'getSelection',
  'location',
  'performance',
  'setInterval',
];

export default tseslint.config(
  { ignores: ['dist', 'dist-bench', 'dist-demo', 'dist-simulation', 'coverage', 'test/openapi/client'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        project: ['./test/tsconfig.json'],
        tsconfigRootDir: new URL('..', import.meta.url).pathname,
      },
    },
    rules: {
      'max-lines': ['error', { max: 450 }],
      'max-lines-per-function': ['error', { max: 60, skipComments: true }],
      complexity: ['error', 10],
      'no-restricted-imports': ['error', { paths: [undiciHoles] }],
      'no-console': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    // Rejects expressions in which two quantifiers or alternatives compete for the same text, so that matching
    // takes linear time.
    files: ['src/**/*.ts', 'src/**/*.js'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential', ignorePartial: false }],
      'regexp/no-dupe-disjunctions': ['error', { report: 'all', reportExponentialBacktracking: 'potential' }],
      'no-restricted-syntax': ['error', runtimeExpressions],
    },
  },
  {
    // Compose their expressions once, of constant phrases without repetition, and of the paths of routes.
    files: ['src/cache/memory/phrase-codec.ts', 'src/http/route-table.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    // Status page scripts, which run unchanged in a browser.
    files: ['src/**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: Object.fromEntries(BROWSER_GLOBALS.map((name) => [name, 'readonly'])) },
    rules: { 'no-undef': 'error' },
  },
  {
    // A program that runs without a build.
    files: ['test/mutation/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
);
