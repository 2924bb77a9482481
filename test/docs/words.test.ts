// Lists phrases to avoid in comments, test titles, documents and dashboards, in favour of terms of the field.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Maps a phrase to its replacement. Add a phrase after rewriting it more than once in review. */
const PHRASES: [RegExp, string][] = [
  [/\banew\b/i, 'again'],
  [/\bat once\b/i, 'immediately, or at the same time'],
  [/\bbegins? so\b/i, 'has the prefix'],
  [/\bbelow zero\b/i, 'negative'],
  [/\bbeside\b/i, 'next to, in addition to, except'],
  [/\bbrok(?:e|en) off\b/i, 'aborted'],
  [/\bby lot\b/i, 'at random'],
  [/\bby what\b/i, 'a noun: by result, by route'],
  [/\bfor good\b/i, 'permanently'],
  [/\bfor so long\b/i, 'for this time, or the number'],
  [/\bgiven up\b/i, 'aborted'],
  [/\bgive[ns]? back\b/i, 'return'],
  [/\bhow it ended\b/i, 'its outcome'],
  [/\bin other letters\b/i, 'in different case'],
  [/\bin vain\b/i, 'without success'],
  [/\bis there\b/i, 'exists'],
  [/\blets? \S+(?: \S+)? stand\b/i, 'retain'],
  [/\blives? elsewhere\b/i, 'a foreign prefix'],
  [/\bmany a\b/i, 'many'],
  [/\bof (?:his|its|their) own\b/i, 'separate, or own before the noun'],
  [/\bone after the other\b/i, 'in sequence'],
  [/\bone that\b/i, 'a noun: a server that, a record that'],
  [/\bpushed? out\b/i, 'evict'],
  [/\b(?:resting|left alone|leaves? alone)\b/i, 'backoff, not contacted'],
  [/\bseldom\b/i, 'rarely'],
  [/\bso many\b/i, 'the number, or this number of'],
  [/\bsomething else than\b/i, 'other than'],
  [/\bstands? in\b|\bstood in\b|\bstand-in\b/i, 'stale, or test double'],
  [/\bstrangers?\b/i, 'third party, untrusted client'],
  [/\bturned away\b/i, 'rejected'],
  [/\bwent on\b/i, 'continued'],
  [/\bwhat is not?\b/, 'a noun: an unsampled request'],
  [/\bwhoever\b/i, 'a noun: any client'],
];

/** Openings without a verb or a noun. */
const HEADLESS = /^(?:Of|What|Who|Whose|By what|One that|That of|Those of) /;

interface Text {
  place: string;
  text: string;
}

const trackedFiles = (pattern: RegExp): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .filter((path) => pattern.test(path));

/** Returns the first group of every matching line in a file, with its place. */
function linesOf(path: string, line: RegExp): Text[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((content, index) => {
      const text = line.exec(content)?.[1];
      return text === undefined ? [] : [{ place: `${path}:${String(index + 1)}`, text }];
    });
}

const comments = (): Text[] =>
  trackedFiles(/^(?:src|test|config)\/.*\.(?:ts|js|cjs)$/)
    .filter((path) => !path.endsWith('words.test.ts') && !path.startsWith('test/openapi/client/'))
    .flatMap((path) => linesOf(path, /^\s*(?:\/\/|\/?\*\*?)\s(.+?)(?:\s*\*\/)?$/));

const titles = (): Text[] =>
  trackedFiles(/^test\/.*\.test\.ts$/).flatMap((path) =>
    linesOf(
      path,
      /^\s*(?:(?:describe|it|test|example)(?:\.\w+)?(?:\(.*\))?|\](?:, \{.+\})?\))\(\s*(['"`].+)$/,
    ),
  );

/** Returns the newest version of the changelog without its tables, which contain former names. */
function newestChanges(): Text[] {
  const changes = linesOf('CHANGELOG.md', /^([^|].*)$/);
  const isHeading = ({ text }: Text): boolean => text.startsWith('## ');
  const end = changes.findIndex((line, at) => isHeading(line) && changes.slice(0, at).some(isHeading));
  return changes.slice(0, end);
}

const documents = (): Text[] => [
  ...newestChanges(),
  ...trackedFiles(/\.md$/)
    .filter((path) => path !== 'CHANGELOG.md')
    .flatMap((path) => linesOf(path, /^(.+)$/)),
  ...linesOf('config/default.yaml', /^\s*#\s?(.+)$/),
  ...trackedFiles(/^config\/(?:grafana|prometheus)\//).flatMap((path) =>
    linesOf(path, /(?:title|description|summary|legendFormat)"?: (.+)$/),
  ),
];

const findPhrases = (texts: Text[]): string[] =>
  texts.flatMap(({ place, text }) =>
    PHRASES.filter(([phrase]) => phrase.test(text)).map(
      ([phrase, instead]) => `${place} ${String(phrase.exec(text)?.[0])} (write: ${instead}): ${text}`,
    ),
  );

describe('terminology checks', () => {
  it.each([
    ['comments', comments],
    ['test titles', titles],
    ['documents, default.yaml, dashboards and alerts', documents],
  ])('find no listed phrase in %s', (_name, read) => {
    const texts = read();
    expect(texts.length).toBeGreaterThan(100);
    expect(findPhrases(texts)).toEqual([]);
  });

  it('find a verb or a noun at the start of every comment in src', () => {
    const starts = trackedFiles(/^src\/.*\.ts$/).flatMap((path) =>
      linesOf(path, /^\s*(?:\/\/|\/\*\*)\s(.+?)(?:\s*\*\/)?$/),
    );
    expect(
      starts.filter(({ text }) => HEADLESS.test(text)).map(({ place, text }) => `${place} ${text}`),
    ).toEqual([]);
  });
});
