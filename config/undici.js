// What src uses of undici, for the bundle. Its index also loads fetch, WebSocket and mocks: 500 kB, for which each start
// takes 60 of 400 ms of CPU and 2 of 76 MiB (import of app.js, Node 20). These paths are not part of undici's interface: a release that moves one
// fails `npm run build`.
import api from 'undici/lib/api/index.js';
import buildConnector from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';

Object.assign(Dispatcher.prototype, api);

export { Client, Pool, buildConnector };
