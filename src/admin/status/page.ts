// The status page: an HTML frame without data, which its scripts fill by element id.
import { readFileSync } from 'node:fs';
import type { Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../../errors.js';
import { type Html, html } from '../../html/html.js';
import { renderDocument, securityHeaders } from '../../html/layout.js';
import { callOf, decodeParameter } from '../call.js';
import { STATUS_STYLE } from './style.js';

const CHART_WIDTH = 300;
const CHART_HEIGHT = 80;

const section = (id: string, title: string, content: Html): Html =>
  html`<section aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${content}
  </section>`;

/** A figure with a chart of the last minute. */
const chartTile = (id: string, title: string, label: string): Html =>
  section(
    id,
    title,
    html`<p class="figure" id="${id}">–</p>
      <p class="more" id="${id}-more"></p>
      <div class="chart">
        <span class="top" id="${id}-top"></span>
        <svg
          id="${id}-chart"
          role="img"
          aria-label="${label}, the last minute"
          viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}"
          preserveAspectRatio="none"
        >
          <path class="marks" />
          <path class="area" />
          <path class="line" />
        </svg>
        <span class="ends" aria-hidden="true"><span>a minute ago</span><span>now</span></span>
      </div>`,
  );

const stateTile = (id: string, title: string): Html =>
  section(
    id,
    title,
    html`<p class="figure part" id="${id}">–</p>
      <p class="more" id="${id}-more"></p>`,
  );

const listTile = (id: string, title: string, columns: readonly [string, string]): Html =>
  section(
    id,
    title,
    html`<table>
        <thead>
          <tr>
            ${columns.map((column) => html`<th scope="col">${column}</th>`)}
          </tr>
        </thead>
        <tbody id="${id}"></tbody>
      </table>
      <p class="more" id="${id}-more"></p>`,
  );

/** URLs are relative: a reverse proxy may serve the listener under a path. */
const PAGE = renderDocument({
  title: 'Status – handle-resolver-proxy',
  icon: {
    // A data: URL, so that browsers do not request /favicon.ico: three bars of a chart.
    href: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='%230b57d0'%3E%3Cpath d='M1 9h4v6H1zM6 5h4v10H6zM11 1h4v14h-4z'/%3E%3C/svg%3E",
    type: 'image/svg+xml',
  },
  resources: html`<link rel="stylesheet" href="status/style.css" />
    <script type="module" src="status/main.js"></script>`,
  header: html`<h1>handle-resolver-proxy <span id="host"></span></h1>
    <p id="connection" class="badge">Connecting</p>`,
  main: html`<noscript
      ><p>This page needs JavaScript. The same figures are at <a href="stats">/stats</a>.</p></noscript
    >
    <p id="state" class="state" role="status">No figures yet</p>
    <div class="tiles figures">
      ${chartTile('hits', 'Hit ratio', 'Cache hit ratio')}
      ${chartTile('rate', 'Requests per second', 'Requests per second')}
      ${chartTile('latency', 'Latency (99 %)', '99th percentile of the response time')}
      ${chartTile('upstream', 'Handle server (99 %)', '99th percentile of the upstream response time, with failures')}
    </div>
    <div class="tiles figures">
      ${stateTile('server', 'Handle server')} ${stateTile('redis', 'Redis')} ${stateTile('memory', 'Memory')}
      ${stateTile('process', 'Process')}
    </div>
    <div class="tiles lists">
      ${listTile('handles', 'Most requested handles', ['Count', 'Handle'])}
      ${listTile('misses', 'Most missed handles', ['Count', 'Handle'])}
      ${listTile('errors', 'Recent errors', ['Time', 'Error'])}
    </div>
    <div class="tiles lists">
      ${listTile('networks', 'Networks with the most misses', ['Misses', 'Network'])}
      ${listTile('agents', 'User agents with the most misses', ['Misses', 'User agent'])}
      ${listTile('rules', 'Traffic rules', ['Limited', 'Rule, since the start'])}
    </div>
    <div class="tiles" id="blocked-part" hidden>
      ${listTile('blocked', 'Limited networks', ['Until', 'Network'])}
    </div>`,
  footer: html`<p>
    Figures cover the last minute unless they say otherwise; lists cover the last five to ten minutes. For
    programs: <a href="stats">stats</a>, <a href="metrics">metrics</a>.
  </p>`,
});

const HEADERS = {
  ...securityHeaders({
    'script-src': "'self'",
    'style-src': "'self'",
    'connect-src': "'self'",
    'img-src': 'data:',
    'form-action': "'none'",
  }),
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

export function statusPage(_req: Request, res: Response): void {
  res.set(HEADERS).type('html').send(PAGE);
}

const SCRIPTS = ['main.js', 'render.js', 'health.js', 'format.js', 'dom.js', 'chart.js', 'traffic.js'];

/** The scripts and the style sheet of the page, by name. */
export function createStatusFiles(): RequestHandler {
  const files = new Map(SCRIPTS.map((name) => [name, readScript(name)]));
  files.set('style.css', STATUS_STYLE);
  return function statusFile(req: Request, res: Response): void {
    const name = decodeParameter(callOf(res).rest);
    const text = files.get(name);
    if (text === undefined) throw new ServiceError('UNKNOWN_ENDPOINT', { detail: `no file ${req.path}` });
    res.set(HEADERS).type(name).send(text);
  };
}

/** `browser` lies beside the bundle too; a compiler adds a source map comment. */
function readScript(name: string): string {
  const text = readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
  return text.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}
