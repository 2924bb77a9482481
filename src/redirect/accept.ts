// The Accept header: quality of a media type (RFC 9110 section 12.5.1).

interface MediaRange {
  type: string;
  quality: number;
}

const MAX_RANGES = 100;

/** The quality of a media type, 0 to 1. Without the header every type has quality 1. */
export function readAccept(accept: string | undefined): (mediaType: string) => number {
  if (accept === undefined || accept.trim() === '') return () => 1;
  const qualities = new Map<string, number>();
  for (const { type, quality } of accept.split(',', MAX_RANGES).map(readRange)) {
    if (!qualities.has(type)) qualities.set(type, quality);
  }
  return function qualityOf(mediaType) {
    const [family = ''] = mediaType.split('/');
    // The most specific range takes precedence.
    return qualities.get(mediaType) ?? qualities.get(`${family}/*`) ?? qualities.get('*/*') ?? 0;
  };
}

/** True for programs that prefer JSON; browsers prefer HTML. */
export function prefersJson(accept: string | undefined): boolean {
  const qualityOf = readAccept(accept);
  const json = ['application/json', 'application/problem+json'].map(qualityOf);
  return Math.max(...json) > qualityOf('text/html');
}

function readRange(text: string): MediaRange {
  const [type = '', ...parameters] = text
    .toLowerCase()
    .split(';')
    .map((piece) => piece.trim());
  const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}
