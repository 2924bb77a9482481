// What others wrote, made fit for a terminal.

/**
 * Handles and values are written by anybody: control characters in them would move the cursor, or worse, and
 * marks of direction would show another text than there is. Written as JSON escapes them.
 */
export const printable = (text: string): string =>
  text.replace(HARMFUL, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Lines and indentation stay. */
export const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

const HARMFUL = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
