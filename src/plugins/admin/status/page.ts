// Renders the status page and its style sheet. The HTML has no data; scripts fill it in by element id.
import { readFileSync } from 'node:fs';
import type { Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../../../errors.js';
import { html, type Html, renderDocument, securityHeaders } from '../../../html/html.js';
import { baseStyle } from '../../../html/style.js';
import { startEvents } from '../../../http/request-work.js';
import { restOf } from '../../../http/route-table.js';
import { callOf, decodeParameter } from '../../../http/router.js';

const pageSection = (id: string, title: string, content: Html): Html =>
  html`<section aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${content}
  </section>`;

const chartTile = (id: string, title: string, label: string): Html =>
  pageSection(
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
          viewBox="0 0 300 80"
          preserveAspectRatio="none"
        >
          <path class="marks" />
          <path class="area" />
          <path class="line" />
        </svg>
        <span class="ends" aria-hidden="true"><span>a minute ago</span> <span>now</span></span>
      </div>`,
  );

const stateTile = (id: string, title: string): Html =>
  pageSection(
    id,
    title,
    html`<p class="figure part" id="${id}">–</p>
      <p class="more" id="${id}-more"></p>`,
  );

const listTile = (id: string, title: string, columns: readonly [string, string]): Html =>
  pageSection(
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

/** Style sheet, with figures large enough for a wall screen. */
const STATUS_STYLE = `${baseStyle()}
body{padding:0 clamp(.75rem,1.5vw,2rem);font-size:clamp(1rem,.8rem + .4vw,1.5rem);line-height:1.4}
header{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:.25rem 1rem;padding-top:.75rem}
h1{font-size:1.1em;margin:0;overflow-wrap:anywhere}
h1 span{font-weight:400;color:var(--quiet)}
h2{font-size:1em;font-weight:600;margin:0;color:var(--quiet)}
p{margin:0}
.badge{font-weight:600;color:var(--quiet)}
.badge[data-level=bad]{color:var(--bad)}
.state{margin:.6rem 0;padding:.35em .6em;border-radius:.4rem;border:1px solid var(--line);background:var(--card);font-size:clamp(1.5rem,3vw,3.5rem);line-height:1.2;font-weight:700}
.state[data-level]{color:var(--on-level);border-color:transparent}
.state[data-level=good]{background:var(--good-back);color:var(--on-good)}
.state[data-level=warn]{background:var(--warn)}
.state[data-level=bad]{background:var(--bad)}
.tiles{display:grid;gap:.75rem;margin:.75rem 0;grid-template-columns:minmax(0,1fr)}
.tiles[hidden]{display:none}
@media (min-width:34em){.figures{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media (min-width:64em){.figures{grid-template-columns:repeat(4,minmax(0,1fr))}.lists{grid-template-columns:repeat(3,minmax(0,1fr))}}
section{padding:.7rem .9rem;min-width:0;display:flex;flex-direction:column}
.figure{font-size:clamp(2.4rem,4.4vw,6rem);line-height:1.15;font-weight:700;font-variant-numeric:tabular-nums;letter-spacing:-.01em;overflow-wrap:anywhere}
.figure.part{font-size:clamp(1.7rem,2.7vw,3.8rem);line-height:1.3}
.figure small{font-size:.5em;font-weight:600;letter-spacing:0}
.figure[data-level=good]{color:var(--good)}
.figure[data-level=warn]{color:var(--warn)}
.figure[data-level=bad]{color:var(--bad)}
.more{color:var(--quiet);font-variant-numeric:tabular-nums;overflow-wrap:anywhere;white-space:pre-line}
.chart{margin-top:auto;font-size:.8em;color:var(--quiet)}
.chart svg{display:block;width:100%;height:clamp(4.5rem,11vh,10rem);border-bottom:1px solid var(--line);border-top:1px dashed var(--line);overflow:visible}
.top{display:block;min-height:1.4em;text-align:right}
.ends{display:flex;justify-content:space-between}
.area{fill:var(--area)}
.line{fill:none;stroke:var(--link);stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round;vector-effect:non-scaling-stroke}
.marks{fill:none;stroke:var(--bad);stroke-width:3;vector-effect:non-scaling-stroke}
table{margin-top:.25rem}
table:has(tbody:empty){display:none}
th{font-size:.8em;text-align:left;color:var(--quiet);font-weight:600}
th,td{padding:.15rem .75rem .15rem 0;vertical-align:top}
td{border-top:1px solid var(--line);overflow-wrap:anywhere}
td:first-child{width:1%;white-space:nowrap;font-variant-numeric:tabular-nums;text-align:right}
th:first-child{text-align:right}
footer{font-size:.85em;padding-bottom:1rem}
.old .tiles{filter:grayscale(1)}
`;

/** Uses relative URLs, because a reverse proxy may serve the listener under a path. */
const PAGE = renderDocument({
  title: 'Status – handle-resolver-proxy',
  icon: { href: 'favicon.ico', type: 'image/svg+xml' },
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
    'img-src': "'self'",
    'form-action': "'none'",
  }),
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** The icon of the listener: three bars of a chart. Browsers request it for JSON too. */
const BARS = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="#0b57d0"><path d="M1 9h4v6H1zM6 5h4v10H6zM11 1h4v14h-4z"/></svg>`;

export function statusIcon(_req: Request, res: Response): void {
  res.type('image/svg+xml').send(BARS);
}

export function statusPage(_req: Request, res: Response): void {
  res.set(HEADERS).type('html').send(PAGE);
}

const SCRIPTS = ['main.js', 'render.js', 'health.js', 'format.js', 'dom.js'];

export function createStatusFiles(): RequestHandler {
  const files = new Map(SCRIPTS.map((name) => [name, readScript(name)]));
  files.set('style.css', STATUS_STYLE);
  return function statusFile(req: Request, res: Response): void {
    const name = decodeParameter(restOf(callOf(res)));
    const text = files.get(name);
    if (text === undefined) throw new ServiceError('UNKNOWN_ENDPOINT', { detail: `no file ${req.path}` });
    res.set(HEADERS).type(name).send(text);
  };
}

/** Reads a script, which the build copies next to the bundle, without its source-map comment. */
function readScript(name: string): string {
  const text = readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
  return text.replace(/^\/\/# sourceMappingURL=.*$/m, '');
}

// Streams statistics to the status page once a second as server-sent events.

const INTERVAL_MS = 1000;

/** Maximum viewers. Each costs a connection and about 10 kB a second. */
export const MAX_VIEWERS = 16;

/** Maximum consecutive missed messages before a viewer is disconnected. */
const MAX_SKIPPED = 30;

/** Collects statistics once for all viewers, while there are any; `onUnexpected`: called if that fails. */
export function createEventStream(
  status: () => Promise<object>,
  onUnexpected: (error: unknown) => void,
): RequestHandler {
  const viewers = new Map<Response, number>();
  let timer: NodeJS.Timeout | undefined;
  let latest: string | undefined;

  async function publish(): Promise<void> {
    try {
      const message = `data: ${JSON.stringify(await status())}\n\n`;
      if (viewers.size === 0) return;
      latest = message;
      for (const [viewer, skipped] of viewers) viewers.set(viewer, sendEvent(viewer, message, skipped));
    } catch (error) {
      onUnexpected(error);
      // The page reports the lost connection and reconnects.
      for (const viewer of viewers.keys()) viewer.destroy();
    }
  }

  function add(viewer: Response): void {
    viewers.set(viewer, 0);
    viewer.once('close', () => remove(viewer));
    if (latest !== undefined) sendEvent(viewer, latest, 0);
    if (timer !== undefined) return;
    void publish();
    timer = setInterval(() => void publish(), INTERVAL_MS).unref();
  }

  function remove(viewer: Response): void {
    viewers.delete(viewer);
    if (viewers.size > 0) return;
    clearInterval(timer);
    timer = latest = undefined;
  }

  return function events(req: Request, res: Response): void {
    if (viewers.size >= MAX_VIEWERS)
      throw new ServiceError('ADMIN_BUSY', { detail: `at most ${MAX_VIEWERS}` });
    if (startEvents(req, res)) add(res);
  };
}

/** Sends a message unless the last one is unread. Returns the number of consecutive missed messages. */
function sendEvent(viewer: Response, message: string, skipped: number): number {
  if (!viewer.writableNeedDrain) {
    viewer.write(message);
    return 0;
  }
  if (skipped >= MAX_SKIPPED) viewer.destroy();
  return skipped + 1;
}
