// Input as the Java server reads it: numbers, texts, lenient JSON (Gson), and the errors of all three.

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

/** Parses JSON text; returns null for empty text. @throws BadInput with the real server's error message */
export function readJson(text: string): unknown {
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return new LenientReader(text).readDocument();
  }
}

/** Parses the text in one pass, and tracks the path for error messages. */
class LenientReader {
  #at = 0;

  constructor(private readonly text: string) {}

  readDocument(): unknown {
    const value = this.#value('$');
    if (this.#peek() !== '') throw this.#malformed('Expected EOF', '$');
    return value;
  }

  #value(path: string): unknown {
    const char = this.#peek();
    if (char === '') throw this.#ended(path);
    if (char === '{') return this.#object(path);
    if (char === '[') return this.#array(path);
    if (char === '"' || char === "'") return this.#quoted(path);
    return asPrimitive(this.#bare(path));
  }

  #object(path: string): Record<string, unknown> {
    const members: [string, unknown][] = [];
    this.#at++;
    while (this.#peek() !== '}') {
      if (this.#peek() === '') throw this.#ended(`${path}.`);
      const name = this.#name(`${path}.`);
      this.#expect(':', `${path}.${name}`);
      members.push([name, this.#value(`${path}.${name}`)]);
      this.#separate('}', `${path}.${name}`);
    }
    this.#at++;
    return Object.fromEntries(members);
  }

  #array(path: string): unknown[] {
    const elements: unknown[] = [];
    this.#at++;
    while (this.#peek() !== ']') {
      elements.push(this.#value(`${path}[${elements.length}]`));
      this.#separate(']', `${path}[${elements.length}]`);
    }
    this.#at++;
    return elements;
  }

  #name(path: string): string {
    const char = this.#peek();
    return char === '"' || char === "'" ? this.#quoted(path) : this.#bare(path);
  }

  #quoted(path: string): string {
    const quote = this.text.charAt(this.#at);
    const start = ++this.#at;
    while (this.text[this.#at] !== quote) {
      if (this.#at >= this.text.length) throw this.#malformed('Unterminated string', path);
      this.#at += this.text[this.#at] === '\\' ? 2 : 1;
    }
    return unescaped(this.text.slice(start, this.#at++));
  }

  #bare(path: string): string {
    const word = /[^\s{}[\]:,;="'\\#/]*/y;
    word.lastIndex = this.#at;
    const found = word.exec(this.text)?.[0] ?? '';
    if (found === '') throw this.#malformed('Unexpected value', path);
    this.#at += found.length;
    return found;
  }

  #expect(char: string, path: string): void {
    if (this.#peek() === '') throw this.#ended(path);
    if (this.#peek() !== char) throw this.#malformed(`Expected '${char}'`, path);
    this.#at++;
  }

  #separate(end: string, path: string): void {
    const char = this.#peek();
    if (char === end) return;
    if (char === '') throw this.#ended(path);
    if (char !== ',' && char !== ';')
      throw this.#malformed(end === '}' ? 'Unterminated object' : 'Unterminated array', path);
    this.#at++;
  }

  /** Returns the next non-space character, or an empty string at the end. */
  #peek(): string {
    while (/\s/.test(this.text.charAt(this.#at))) this.#at++;
    return this.text.charAt(this.#at);
  }

  #ended(path: string): BadInput {
    return this.#syntax(`java.io.EOFException: End of input`, path);
  }

  #malformed(what: string, path: string): BadInput {
    return this.#syntax(`com.google.gson.stream.MalformedJsonException: ${what}`, path);
  }

  #syntax(what: string, path: string): BadInput {
    const before = this.text.slice(0, this.#at).split('\n');
    const column = (before.at(-1)?.length ?? 0) + 1;
    return new BadInput(
      `com.google.gson.JsonSyntaxException: ${what} at line ${before.length} column ${column} path ${path}`,
    );
  }
}

function asPrimitive(word: string): unknown {
  try {
    return JSON.parse(word.toLowerCase()) as unknown;
  } catch {
    return word;
  }
}

const ESCAPED: Record<string, string> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-f]{4})|([\s\S]))/gi, (_, hex: string | undefined, char: string) =>
    hex === undefined ? (ESCAPED[char] ?? char) : String.fromCharCode(parseInt(hex, 16)),
  );
}
