// What instances tell each other about a key, as one line of text.
import type { Sweep } from './sweeps.js';

export type Message =
  | { kind: 'forget' | 'soften'; key: string }
  /** Of all keys that begin with `key`; `number` is what Redis calls it, 0 for nothing. */
  | { kind: 'sweep'; key: string; isSoft: boolean; number: number }
  /** All that is shared was made invisible. */
  | { kind: 'epoch'; key: ''; epoch: number }
  /** `lifeMs`: until the fence expires. With `unknown` it is raised again, as a process may have started since. */
  | { kind: 'raise' | 'unknown'; key: string; writer: string; lifeMs: number }
  | { kind: 'changed' | 'unchanged'; key: string; writer: string };

/** What one instance says about one key. */
export type KeyMessage = Exclude<Message, { kind: 'epoch' | 'sweep' }>;

/** A write that has begun, or that was refused, leaves entries and loads in flight as good as before. */
export const isInvalidation = ({ kind }: KeyMessage): boolean => kind !== 'raise' && kind !== 'unchanged';

/** The key comes last, as it may contain anything. */
export function writeMessage(message: KeyMessage): string {
  const writer = 'writer' in message ? message.writer : '-';
  const lifeMs = 'lifeMs' in message ? message.lifeMs : 0;
  return `${message.kind} ${writer} ${lifeMs} ${message.key}`;
}

/** The same for a sweep; Redis puts its number between the two parts. */
export function sweepLine({ prefix, isSoft }: Sweep): [before: string, after: string] {
  return [`sweep ${isSoft ? 'soft' : 'hard'} `, ` ${prefix}`];
}

/** The line of an epoch that is filled in by Redis (%d). */
export const EPOCH_LINE = 'epoch - %d ';

/** Reads a line; what another release may say that we do not know is undefined. */
export function readMessage(line: string): Message | undefined {
  const { kind, writer, life, key } = wordsOf(line);
  switch (kind) {
    case 'forget':
    case 'soften':
      return { kind, key };
    case 'sweep':
      return { kind, key, isSoft: writer === 'soft', number: Number(life) };
    case 'epoch':
      return { kind, key: '', epoch: Number(life) };
    case 'raise':
    case 'unknown':
      return { kind, key, writer, lifeMs: Number(life) };
    default:
      return kind === 'changed' || kind === 'unchanged' ? { kind, key, writer } : undefined;
  }
}

function wordsOf(line: string): Record<'kind' | 'writer' | 'life' | 'key', string> {
  const [, kind = '', writer = '', life = '', key = ''] = /^(\S+) (\S+) (\d+) ([^]*)$/.exec(line) ?? [];
  return { kind, writer, life, key };
}
