// Phrases of translated English do not come back: comments, test titles, documents and messages use the words of the field.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Phrases and what to write instead. A phrase belongs here when a reviewer has rewritten it more than once. */
const PHRASES: [RegExp, string][] = [
  [/\banew\b/i, 'again'],
  [/\bat once\b/i, 'immediately, or at the same time'],
  [/\bbeside\b/i, 'next to, in addition to, except'],
  [/\bby what\b/i, 'a noun: by result, by route'],
  [/\bbroken off\b/i, 'aborted'],
  [/\bfor so long\b/i, 'for this time, or the number'],
  [/\bin vain\b/i, 'without success'],
  [/\bmany a\b/i, 'many'],
  [/\bof (?:his|its|their) own\b/i, 'separate, or own before the noun'],
  [/\bone after the other\b/i, 'in sequence'],
  [/\bone that\b/i, 'a noun: a server that, a record that'],
  [/\bpushed? out\b/i, 'evict'],
  [/\b(?:resting|left alone|leaves? alone)\b/i, 'backoff, not contacted'],
  [/\bseldom\b/i, 'rarely'],
  [/\bso many\b/i, 'the number, or this number of'],
  [/\bstands? in\b|\bstood in\b|\bstand-in\b/i, 'stale, or test double'],
  [/\bstrangers?\b/i, 'third party, untrusted client'],
  [/\bturned away\b/i, 'rejected'],
];

/** A comment begins with a verb or a noun. */
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

/** Lines of a file that match, from the first group of the match. */
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
    linesOf(path, /^\s*(?:describe|it|test)(?:\.\w+)?(?:\(.*\))?\(\s*(['"`].+)$/),
  );

const documents = (): Text[] => [
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

describe('words', () => {
  it.each([
    ['comments', comments],
    ['test titles', titles],
    ['documents, default.yaml, dashboards and alerts', documents],
  ])('%s have no phrase of the list', (_name, read) => {
    const texts = read();
    expect(texts.length).toBeGreaterThan(100);
    expect(findPhrases(texts)).toEqual([]);
  });

  it('no comment of src begins without a subject', () => {
    const starts = trackedFiles(/^src\/.*\.ts$/).flatMap((path) =>
      linesOf(path, /^\s*(?:\/\/|\/\*\*)\s(.+?)(?:\s*\*\/)?$/),
    );
    expect(
      starts.filter(({ text }) => HEADLESS.test(text)).map(({ place, text }) => `${place} ${text}`),
    ).toEqual([]);
  });
});
