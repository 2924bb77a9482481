// What stands on the status page. The script knows each place by its id.

const HISTORY_WIDTH = 300;
const HISTORY_HEIGHT = 80;

const chart = (id: string, label: string): string => `<div class="chart">
<span class="top" id="${id}-top"></span>
<svg id="${id}-chart" role="img" aria-label="${label}, the last minute" viewBox="0 0 ${HISTORY_WIDTH} ${HISTORY_HEIGHT}" preserveAspectRatio="none"><path class="marks"/><path class="area"/><path class="line"/></svg>
<span class="ends" aria-hidden="true"><span>a minute ago</span><span>now</span></span>
</div>`;

const section = (
  id: string,
  title: string,
  inside: string,
): string => `<section aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${inside}
</section>`;

const figure = (id: string, title: string, label: string): string =>
  section(
    id,
    title,
    `<p class="figure" id="${id}">–</p><p class="more" id="${id}-more"></p>${chart(id, label)}`,
  );

/** Of less weight than a figure with its chart. */
const part = (id: string, title: string): string =>
  section(id, title, `<p class="figure part" id="${id}">–</p><p class="more" id="${id}-more"></p>`);

const list = (id: string, title: string, columns: readonly [string, string]): string =>
  section(
    id,
    title,
    `<table>
<thead><tr>${columns.map((column) => `<th scope="col">${column}</th>`).join('')}</tr></thead>
<tbody id="${id}"></tbody>
</table>
<p class="more" id="${id}-more"></p>`,
  );

export const BODY = `<header>
<h1>handle-resolver-proxy <span id="host"></span></h1>
<p id="connection" class="badge">Connecting</p>
</header>
<main>
<noscript><p>This page needs JavaScript. The same figures are at <a href="stats">/stats</a>.</p></noscript>
<p id="state" class="state" role="status">No figures yet</p>
<div class="tiles figures">
${figure('hits', 'Answered from the cache', 'Share of answers from the cache')}
${figure('rate', 'Answers a second', 'Answers a second')}
${figure('latency', 'Latency (99 %)', 'Time within which 99 % of the answers are given')}
${figure('upstream', 'Handle server (99 %)', 'Time within which the Handle server gives 99 % of its answers; marks are failures')}
</div>
<div class="tiles figures">
${part('server', 'Handle server')}
${part('redis', 'Redis')}
${part('memory', 'Memory')}
${part('workers', 'Processes')}
</div>
<div class="tiles lists">
${list('handles', 'Asked for most', ['Times', 'Handle'])}
${list('misses', 'Missed most', ['Times', 'Handle'])}
${list('errors', 'Recent errors', ['When', 'What'])}
</div>
</main>
<footer><p>Figures of the last minute, unless they say otherwise; lists of the last five to ten minutes. For programs: <a href="stats">stats</a>, <a href="metrics">metrics</a>.</p></footer>`;
