// What is wrong with a configuration: every problem at once, each on its own line.

export interface ConfigProblem {
  /** The key, or nothing when the file itself is the problem. */
  key?: string;
  /** Where the value came from: `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
  text: string;
}

export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(['The configuration cannot be used:', ...problems.map(line)].join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

const line = ({ key, source, text }: ConfigProblem): string =>
  key === undefined ? `  ${source}: ${text}` : `  ${key} (${source}): ${text}`;
