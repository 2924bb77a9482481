// Bundles only the part of undici that src uses. Its index also loads fetch, WebSocket and mocks, 500 kB to
// parse at each start. These paths are internal to undici; `npm run build` fails if a release moves one.
import request from 'undici/lib/api/api-request.js';
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Client from 'undici/lib/dispatcher/client.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';

Object.assign(Dispatcher.prototype, { request });

export { Agent, Client, Pool, buildConnector };
