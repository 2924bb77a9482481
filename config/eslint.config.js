import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

const undiciHoles = {
  name: 'undici',
  importNames: ['fetch', 'request', 'stream', 'pipeline', 'install'],
  message:
    'These ignore the Dispatcher that is given: send over it (upstream/exchange.ts), so that tests can replace it.',
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
      'max-lines': ['error', { max: 400 }],
      'max-lines-per-function': ['error', { max: 60, skipComments: true }],
      complexity: ['error', 10],
      'no-restricted-imports': ['error', { paths: [undiciHoles] }],
      'no-console': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    // Rejects expressions that can match the same text in two ways, so that matching takes linear time.
    files: ['src/**/*.ts', 'src/**/*.js'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential', ignorePartial: false }],
    },
  },
  {
    // Status page scripts, which run unchanged in a browser.
    files: ['src/**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: Object.fromEntries(BROWSER_GLOBALS.map((name) => [name, 'readonly'])) },
    rules: { 'no-undef': 'error' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
);
