// The answer for a handle as the record interface gives it, read for showing.
import type { HandleValue } from '../handle/value.js';

export interface Answered {
  handle: string;
  values: HandleValue[];
}

/** Undefined for anything else, such as an error. */
export function readAnswered(text: string): Answered | undefined {
  const { handle, values } = parsed(text);
  if (typeof handle !== 'string' || !Array.isArray(values) || !values.every(isValue)) return undefined;
  return { handle, values };
}

function parsed(text: string): { handle?: unknown; values?: unknown } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

const isValue = (value: Partial<HandleValue> | null): value is HandleValue =>
  typeof value?.index === 'number' && typeof value.type === 'string';

/** Text as it is; data of any other form as JSON. */
export function textOfData({ data }: HandleValue): { text: string; isText: boolean } {
  if (typeof data === 'string') return { text: data, isText: true };
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  if (format === 'string' && typeof value === 'string') return { text: value, isText: true };
  return { text: JSON.stringify(value ?? data ?? null), isText: false };
}
