// Input errors with the Java server's messages, and parsers that accept the same input as Java.

/** An input error, which the server returns as HTTP 400 with `{"responseCode":4,"message":…}`. */
export class BadInput extends Error {
  override readonly name = 'BadInput';
}

export const javaException = (text: string): BadInput => new BadInput(`java.lang.Exception: ${text}`);

export const numberFormat = (text: string): BadInput =>
  new BadInput(`java.lang.NumberFormatException: For input string: "${text}"`);

/** Creates the error for a value rejected by Gson's adapter: a JsonParseException with its cause. */
export const badValue = (cause: string): BadInput =>
  new BadInput(`com.google.gson.JsonParseException: ${cause}`);

/** Parses a 32-bit integer like Java's `Integer.parseInt`: an optional sign and digits. */
export function parseJavaInt(text: string): number {
  const value = Number(text);
  if (!/^[+-]?\d+$/.test(text) || value !== (value | 0)) throw numberFormat(text);
  return value;
}

/** Converts a JSON string, number or boolean to text, like Gson. @throws BadInput for other JSON */
export function primitiveText(json: unknown): string {
  if (typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean') return String(json);
  throw badValue('java.lang.UnsupportedOperationException: JsonObject');
}
