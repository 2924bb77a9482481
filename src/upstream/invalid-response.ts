// Tells an operator what came instead of a Handle server's answer, without giving away any value.
import { ServiceError } from '../errors.js';

interface Arrived {
  status: number;
  headers: Pick<Headers, 'get'>;
  body: string;
}

const QUOTED_CHARACTERS = 80;

/** Enough of a page to find 80 characters of text between its tags. */
const LOOKED_AT_CHARACTERS = 2000;

/** The error for a reply that no Handle server would give. */
export function badAnswer(reason: string, arrived: Arrived, cause?: unknown): ServiceError {
  const contentType = printable(arrived.headers.get('content-type') ?? 'no content type');
  const seen = [`HTTP ${arrived.status}`, contentType, `${arrived.body.length} characters`].join(', ');
  const text = quotable(arrived.body);
  const quote = text === '' ? '' : `, "${text}"`;
  const hint = isRedirect(arrived.status)
    ? '; redirects are not followed, set upstream.url to the target'
    : '';
  return new ServiceError('UPSTREAM_BAD_ANSWER', {
    detail: `${reason} (${seen}${quote})${hint}`,
    upstreamStatus: arrived.status,
    cause,
  });
}

const isRedirect = (status: number): boolean => status > 300 && status < 400 && status !== 304;

/** The visible text of a page. Nothing from the first bracket on: a broken record may hold private values. */
function quotable(body: string): string {
  const [beforeJson = ''] = body.slice(0, LOOKED_AT_CHARACTERS).split(/[{[]/, 1);
  return printable(beforeJson.replace(/<[^<>]*>/g, ' '));
}

const printable = (text: string): string =>
  text
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, QUOTED_CHARACTERS);
