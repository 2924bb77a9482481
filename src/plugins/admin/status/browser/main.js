// Runs the status page: reads the event stream while the page is visible, and reports a lost connection.
import { putText, setLevel, element, putState } from './dom.js';
import { span } from './format.js';
import { render } from './render.js';

/** Age at which figures count as outdated; messages arrive once a second. */
const OLD_AFTER_MS = 4000;
/** Silence after which the stream is reopened. */
const SILENT_MS = 12_000;

let stream;
let receivedAt = -Infinity;
let openedAt = -Infinity;
/** Time when the page became visible. */
let visibleAt = performance.now();
/** Set after 401 and 403, to prevent retries until the page is reloaded. */
let isRefused = false;
let reason = 'no response';

function receive(message) {
  receivedAt = performance.now();
  document.body.classList.remove('old');
  setLevel(element('connection'), undefined);
  render(JSON.parse(message.slice('data: '.length)));
}

async function read(signal) {
  const response = await fetch('events', { signal, headers: { Accept: 'text/event-stream' } });
  if (!response.ok) {
    // A retry would make the browser prompt for the password again.
    isRefused = response.status === 401 || response.status === 403;
    const { title = `status ${response.status}` } = await response.json().catch(() => ({}));
    throw new Error(title);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error('stream closed');
    const messages = (rest + value).split('\n\n');
    rest = messages.pop();
    if (messages.length > 0) receive(messages.at(-1));
  }
}

async function open() {
  openedAt = performance.now();
  stream = new AbortController();
  try {
    await read(stream.signal);
  } catch (error) {
    // Browsers report an unreachable server as a TypeError, with different texts.
    reason = error instanceof TypeError ? 'no response' : error.message;
  } finally {
    stream = undefined;
  }
}

function checkConnection() {
  if (document.hidden) return;
  const now = performance.now();
  if (now - Math.max(receivedAt, openedAt) > SILENT_MS) stream?.abort(new Error('no message'));
  if (stream === undefined && !isRefused && now - openedAt >= 1000) void open();
  if (now - Math.max(receivedAt, visibleAt) < OLD_AFTER_MS) return;
  document.body.classList.add('old');
  const age = receivedAt > 0 ? `, figures are ${span(Math.round((now - receivedAt) / 1000))} old` : '';
  putText('connection', `Not connected (${reason})${age}${isRefused ? ': reload the page' : ''}`);
  setLevel(element('connection'), 'bad');
  putState('bad', 'Connection lost');
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) stream?.abort();
  else visibleAt = performance.now();
  checkConnection();
});
putText('host', location.host);
setInterval(checkConnection, 1000);
checkConnection();
