// Invalid input, with the messages of the Java server, and the texts and numbers that Java reads.

/** Becomes HTTP 400 with `{"responseCode":4,"message":…}`; never leaves the demo server. */
export class BadInput extends Error {
  override readonly name = 'BadInput';
}

export const javaException = (text: string): BadInput => new BadInput(`java.lang.Exception: ${text}`);

export const numberFormat = (text: string): BadInput =>
  new BadInput(`java.lang.NumberFormatException: For input string: "${text}"`);

/** A value that Gson's adapter refused: the cause in a JsonParseException. */
export const badValue = (cause: string): BadInput =>
  new BadInput(`com.google.gson.JsonParseException: ${cause}`);

/** Reads an integer as Java's `Integer.parseInt` does: a sign and digits, 32 bits, nothing else. */
export function parseJavaInt(text: string): number {
  const value = Number(text);
  if (!/^[+-]?\d+$/.test(text) || value !== (value | 0)) throw numberFormat(text);
  return value;
}

/** The text of a JSON string, number or boolean, as Gson gives it; anything else is refused. */
export function primitiveText(json: unknown): string {
  if (typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean') return String(json);
  throw badValue('java.lang.UnsupportedOperationException: JsonObject');
}
