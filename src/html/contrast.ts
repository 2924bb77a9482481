// Colours that keep text readable: a contrast of at least 4.5, WCAG 2.2 success criterion 1.4.3 (AA).

type Rgb = readonly number[];

const MIN_CONTRAST = 4.5;

/** Channels from 0 to 255 of `#rgb` or `#rrggbb`. */
function parseColour(hex: string): Rgb {
  const digits = hex.length === 4 ? hex.replace(/[^#]/g, '$&$&') : hex;
  return [1, 3, 5].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

const writeColour = (rgb: Rgb): string =>
  `#${rgb.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;

/** WCAG 2.2, "relative luminance". */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = parseColour(hex).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** WCAG 2.2, "contrast ratio": from 1 to 21. */
export function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** White or black. On every colour one of them has a contrast of at least 4.58. */
export const textColourOn = (back: string): string =>
  contrastOf('#ffffff', back) >= contrastOf('#000000', back) ? '#ffffff' : '#000000';

/** The colour, mixed with as little black or white as makes it readable on all these backgrounds. */
export function readableOn(backs: readonly [string, ...string[]], colour: string): string {
  const end = textColourOn(backs[0]);
  for (let percent = 0; percent < 100; percent++) {
    const mixed = mix(colour, end, percent / 100);
    if (backs.every((back) => contrastOf(mixed, back) >= MIN_CONTRAST)) return mixed;
  }
  return end;
}

function mix(colour: string, added: string, share: number): string {
  const other = parseColour(added);
  return writeColour(
    parseColour(colour).map((channel, at) => Math.round(channel + ((other[at] ?? 0) - channel) * share)),
  );
}
