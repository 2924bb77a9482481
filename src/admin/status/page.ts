// The status page: places for figures, and the scripts that fill them. It holds no data itself.
import { readFileSync } from 'node:fs';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { BODY } from './body.js';
import { STYLE } from './style.js';

/** A data: address, so that a browser does not ask for /favicon.ico: three bars of a chart. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='%230b57d0'%3E%3Cpath d='M1 9h4v6H1zM6 5h4v10H6zM11 1h4v14h-4z'/%3E%3C/svg%3E";

/** Addresses are relative: a web server in front may give the listener a path of its own. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Status – handle-resolver-proxy</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="status/look.css">
<script type="module" src="status/main.js"></script>
</head>
<body>
${BODY}
</body>
</html>
`;

const SCRIPTS = ['main.js', 'show.js', 'judge.js', 'numbers.js', 'places.js', 'chart.js'];

/** Scripts, style and stream of this listener, and nothing else. */
const HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

export function statusPage(_req: Request, res: Response): void {
  res.set(HEADERS).type('html').send(PAGE);
}

/** What the page loads, by name. */
export function createStatusFiles(): RequestHandler {
  const files = new Map(SCRIPTS.map((name) => [name, readScript(name)]));
  files.set('look.css', STYLE);
  return function statusFile(req: Request, res: Response, next: NextFunction): void {
    const name = String(req.params['file']);
    const text = files.get(name);
    if (text === undefined) next();
    else res.set(HEADERS).type(name).send(text);
  };
}

/** The same place from src and from dist, where the compiler has added a line for debuggers. */
function readScript(name: string): string {
  const text = readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
  return text.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}
