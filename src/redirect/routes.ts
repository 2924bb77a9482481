// The browser routes: redirects, record pages, the front page and site files.
import { defineRoutes } from '../http/route-table.js';

export const redirectRoutes = defineRoutes(
  { interface: 'redirect' },
  {
    'GET /': { id: 'lookUp', handler: 'redirect' },
    'POST /': { id: 'postToFrontPage', handler: 'redirect' },
    'GET /{handle}': { id: 'redirectHandle', handler: 'redirect', admitsMisses: true },
    'POST /{handle}': { id: 'redirectHandleByPost', handler: 'redirect' },
    'GET /robots.txt': 'robots',
    'GET /favicon.ico': 'icon',
  },
);
