// What runs on a connection.
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The answer under way. Node keeps it there, and looks there itself before it answers a parser's error by default. */
export const responseUnderWay = (socket: Duplex): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
