// A question that anybody may ask of the record interface, read from the raw request target without Express.
import { ServiceError } from '../errors.js';
import { parseHandle } from '../handle/handle.js';
import { type Format, type Question, readFormat, readParameters, readQuestion } from '../http/query.js';
import { type Target, rawHandleOf, readTarget } from '../http/target.js';

export interface PlainQuestion {
  target: Target;
  handle: string;
  question: Question;
  format: Format;
}

/** Longer targets go the long way, which may refuse them. */
const MAX_TARGET_BYTES = 1000;

/** Undefined when the long way might do anything else than answer it from a record. */
export function readPlainQuestion(rawTarget: string): PlainQuestion | undefined {
  if (rawTarget.length > MAX_TARGET_BYTES) return undefined;
  const target = readTarget(rawTarget);
  const parsed = parseHandle(rawHandleOf(target.path) ?? '');
  if (!parsed.ok) return undefined;
  const parameters = readParameters(target.query);
  const question = questionOf(parameters);
  if (question === undefined || question.authoritative || !question.publicOnly) return undefined;
  return { target, handle: parsed.handle, question, format: readFormat(parameters) };
}

function questionOf(parameters: URLSearchParams): Question | undefined {
  try {
    return readQuestion(parameters);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
