// Runs the dispatcher contract for undici pools and for the node:http dispatcher that tests use with nock.
import '../support/real-sockets.js';
import { createPools } from '../../src/upstream/connections.js';
import { dispatcherContract } from '../support/dispatcher-contract.js';
import { createNodeHttpDispatcher } from '../support/node-http-dispatcher.js';

dispatcherContract('undici pools', createPools);
dispatcherContract('node:http', createNodeHttpDispatcher);
