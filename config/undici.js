// The part of undici that src uses, for the bundle. The index of undici also loads fetch, WebSocket and mocks: 500 kB that
// each start would parse. These paths are not part of undici's interface: `npm run build` fails if a release moves one.
import api from 'undici/lib/api/index.js';
import buildConnector from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';

Object.assign(Dispatcher.prototype, api);

export { Client, Pool, buildConnector };
