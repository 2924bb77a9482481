// Does in this process's memory what others did in theirs.
import type { MemoryStore } from './memory-store.js';
import { type KeyMessage, isInvalidation, readMessage } from './message.js';
import type { SweepMessage } from './redis-sweeps.js';
import type { Sweep } from './sweeps.js';
import type { LeftNames } from './unclaimed.js';

export interface HearingDeps {
  memory: MemoryStore;
  left: LeftNames;
  now: () => number;
  onForgotten: (key: string) => void;
  onSwept: (prefix: string) => void;
}

export interface Hearing {
  /** `isNews`: where there is a Redis, a sweep of another worker is heard from it and from Redis. */
  hear: (line: string, isNews?: (message: SweepMessage) => boolean) => void;
  sweep: (sweep: Sweep) => void;
  /** Messages may have been missed. */
  distrust: () => void;
}

export function createHearing({ memory, left, now, onForgotten, onSwept }: HearingDeps): Hearing {
  const sweep = (swept: Sweep): void => {
    memory.sweep(swept);
    onSwept(swept.prefix);
  };
  return {
    hear: (line, isNews = () => true) => {
      if (left.hear(line)) return;
      const message = readMessage(line);
      if (message === undefined || message.kind === 'epoch') return;
      if (message.kind !== 'sweep') {
        obey(message, memory, now());
        if (isInvalidation(message)) onForgotten(message.key);
      } else if (isNews(message)) sweep({ prefix: message.key, isSoft: message.isSoft });
    },
    sweep,
    distrust() {
      memory.distrust(now());
      onSwept('');
    },
  };
}

/** Does here what another instance did there. */
function obey(message: KeyMessage, memory: MemoryStore, now: number): void {
  switch (message.kind) {
    case 'forget':
      memory.forget(message.key);
      break;
    case 'soften':
      memory.soften(message.key);
      break;
    case 'raise':
      memory.raise(message.key, message.writer, now + message.lifeMs);
      break;
    case 'unknown':
      memory.raise(message.key, message.writer, now + message.lifeMs);
      memory.soften(message.key);
      break;
    case 'changed':
      memory.lower(message.key, message.writer);
      memory.forget(message.key);
      break;
    case 'unchanged':
      memory.lower(message.key, message.writer);
      break;
  }
}
