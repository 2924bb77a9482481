// How much a client wants a media type (RFC 9110 §12.5.1).

interface Range {
  type: string;
  quality: number;
}

const MAX_RANGES = 100;

/** An Accept header that was read once, to be asked about many media types. */
export interface Wanted {
  /** 0 to 1. */
  qualityOf: (mediaType: string) => number;
  /** Of whatever the client wants most. */
  highest: number;
}

/** Without the header everything is welcome. */
export function readAccept(accept: string | undefined): Wanted {
  if (accept === undefined || accept.trim() === '') return { qualityOf: () => 1, highest: 1 };
  const qualities = new Map<string, number>();
  for (const { type, quality } of accept.split(',', MAX_RANGES).map(readRange)) {
    if (!qualities.has(type)) qualities.set(type, quality);
  }
  return {
    qualityOf(mediaType) {
      const [family = ''] = mediaType.split('/');
      // The most specific range decides.
      return qualities.get(mediaType) ?? qualities.get(`${family}/*`) ?? qualities.get('*/*') ?? 0;
    },
    highest: Math.max(...qualities.values()),
  };
}

/** JSON instead of a page, for those who want it more: programs. A browser wants HTML most. */
export function prefersJson(accept: string | undefined): boolean {
  const { qualityOf } = readAccept(accept);
  const json = ['application/json', 'application/problem+json'].map(qualityOf);
  return Math.max(...json) > qualityOf('text/html');
}

function readRange(text: string): Range {
  const [type = '', ...parameters] = text
    .toLowerCase()
    .split(';')
    .map((piece) => piece.trim());
  const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}
