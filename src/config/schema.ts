// The schema of the whole configuration, and the rules that involve several keys.
import { z } from 'zod';
import { isLoopback } from './addresses.js';
import { cache, redis } from './schema-cache.js';
import { deletion, page, redirect, reverseLookup, v2 } from './schema-interfaces.js';
import { admin, http, log, server, tracing } from './schema-server.js';
import { upstream } from './schema-upstream.js';

/** Durations become milliseconds, sizes become bytes. */
export const configSchema = z
  .strictObject({
    server,
    http,
    upstream,
    redis,
    cache,
    deletion,
    reverseLookup,
    v2,
    redirect,
    page,
    admin,
    log,
    tracing,
  })
  .check(({ value, issues }) => {
    if (value.upstream.staleAfter >= value.upstream.timeout) {
      issues.push(crossIssue('upstream.staleAfter', 'give less than upstream.timeout'));
    }
    const { idleTimeout, headersTimeout, requestTimeout } = value.server;
    if (headersTimeout > requestTimeout) {
      issues.push(crossIssue('server.headersTimeout', 'give at most server.requestTimeout'));
    }
    if (idleTimeout !== 0 && idleTimeout <= value.upstream.writeTimeout + value.upstream.queueTimeout) {
      issues.push(
        crossIssue(
          'server.idleTimeout',
          'give more than upstream.writeTimeout and queueTimeout together, or 0s',
        ),
      );
    }
    if (value.redis.cluster && value.redis.sentinels) {
      issues.push(crossIssue('redis.sentinels', 'give this or redis.cluster, not both'));
    }
    if (value.admin.token === undefined && !isLoopback(value.admin.host)) {
      issues.push(crossIssue('admin.host', 'set admin.token, or give a loopback address such as 127.0.0.1'));
    }
    if (value.cache.found.minTtl > value.cache.found.maxTtl) {
      issues.push(crossIssue('cache.found.minTtl', 'give at most cache.found.maxTtl'));
    }
  });

const crossIssue = (key: string, message: string) => ({
  code: 'custom' as const,
  path: key.split('.'),
  message,
  input: undefined,
});

export type Config = z.output<typeof configSchema>;
