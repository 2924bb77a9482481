// The status page in the browser: reads the stream while somebody sees the page, and says when it is lost.
import { span } from './numbers.js';
import { level, place, put, putState } from './places.js';
import { show } from './show.js';

/** Two messages are missing and a third is late. */
const OLD_AFTER_MS = 4000;
/** A stream that is silent for so long is begun anew. */
const SILENT_MS = 12_000;

let stream;
let heardAt = -Infinity;
let beganAt = -Infinity;
/** Since when somebody sees the page. */
let shownAt = performance.now();
/** Until the page is loaded again. */
let isRefused = false;
let why = 'no answer';

function hear(message) {
  heardAt = performance.now();
  document.body.classList.remove('old');
  level(place('connection'), undefined);
  show(JSON.parse(message.slice('data: '.length)));
}

async function read(signal) {
  const answer = await fetch('events', { signal, headers: { Accept: 'text/event-stream' } });
  if (!answer.ok) {
    // Asked again and again, a browser would ask for the password again and again.
    isRefused = answer.status === 401 || answer.status === 403;
    const { title = `status ${answer.status}` } = await answer.json().catch(() => ({}));
    throw new Error(title);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error('the proxy ended the stream');
    const messages = (rest + value).split('\n\n');
    rest = messages.pop();
    if (messages.length > 0) hear(messages.at(-1));
  }
}

async function begin() {
  beganAt = performance.now();
  stream = new AbortController();
  try {
    await read(stream.signal);
  } catch (error) {
    // What a browser calls it when nobody listens is of no use.
    why = error instanceof TypeError ? 'no answer' : error.message;
  } finally {
    stream = undefined;
  }
}

function look() {
  if (document.hidden) return;
  const now = performance.now();
  if (now - Math.max(heardAt, beganAt) > SILENT_MS) stream?.abort(new Error('it fell silent'));
  if (stream === undefined && !isRefused && now - beganAt >= 1000) void begin();
  if (now - Math.max(heardAt, shownAt) < OLD_AFTER_MS) return;
  document.body.classList.add('old');
  const age = heardAt > 0 ? `, figures are ${span(Math.round((now - heardAt) / 1000))} old` : '';
  put('connection', `Not connected (${why})${age}${isRefused ? ': reload the page' : ''}`);
  level(place('connection'), 'bad');
  putState('bad', 'Connection lost');
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) stream?.abort();
  else shownAt = performance.now();
  look();
});
put('host', location.host);
setInterval(look, 1000);
look();
