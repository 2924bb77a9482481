import { METRICS as TRAFFIC_METRICS } from '../../src/plugins/traffic/plugin.js';
import { describe, expect, it } from 'vitest';
import { metricsOf } from '../../src/app/load-plugins.js';
import { PLUGINS, allMetrics } from '../../src/app/plugins.js';
import { createMetrics, type Metrics } from '../../src/observe/metrics.js';

async function measured(act: (metrics: Metrics) => void): Promise<string[]> {
  const metrics = createMetrics();
  act(metrics);
  const text = await metrics.exposition();
  return text.split('\n').filter((line) => line.startsWith('handle_proxy_'));
}

describe('metrics', () => {
  it('count requests by interface, result and status', async () => {
    const lines = await measured((metrics) => {
      metrics.hitsOf('record', 200).value += 2;
      metrics.countRequest({ interface: 'v2', result: 'miss', status: 404, ms: 1 });
    });
    expect(lines).toContain('handle_proxy_requests_total{interface="record",result="hit",status="200"} 2');
    expect(lines).toContain('handle_proxy_requests_total{interface="v2",result="miss",status="404"} 1');
  });

  it('observe durations in seconds by interface and result, with the sample weight for hits', async () => {
    const lines = await measured((metrics) => {
      metrics.countRequest({ interface: 'record', result: 'miss', status: 200, ms: 1500 });
      metrics.observeHits({ interface: 'record', handle: '21.T1/a', ms: 0.5, weight: 16 });
      metrics.observeHits({ interface: 'record', handle: '21.T1/a', ms: 20_000, weight: 1 });
    });
    const ofRecord = (result: string, part: string, le = ''): string =>
      `handle_proxy_request_duration_seconds_${part}{${le}interface="record",result="${result}"}`;
    expect(lines).toEqual(
      expect.arrayContaining([
        `${ofRecord('miss', 'sum')} 1.5`,
        `${ofRecord('miss', 'count')} 1`,
        `${ofRecord('hit', 'bucket', 'le="0.00025",')} 0`,
        `${ofRecord('hit', 'bucket', 'le="0.0005",')} 16`,
        `${ofRecord('hit', 'bucket', 'le="10",')} 16`,
        `${ofRecord('hit', 'bucket', 'le="+Inf",')} 17`,
        `${ofRecord('hit', 'sum')} 20.008`,
        `${ofRecord('hit', 'count')} 17`,
      ]),
    );
  });

  it('count upstream reads and observe their durations', async () => {
    const lines = await measured((metrics) => {
      metrics.countUpstreamRequest({ server: 'http://a', outcome: 'found', ms: 20 });
      metrics.countUpstreamRequest({ server: 'http://a', outcome: 'UPSTREAM_TIMEOUT', ms: 10_000 });
    });
    expect(lines).toContain('handle_proxy_upstream_requests_total{server="http://a",outcome="found"} 1');
    expect(lines).toContain(
      'handle_proxy_upstream_requests_total{server="http://a",outcome="UPSTREAM_TIMEOUT"} 1',
    );
    expect(lines).toContain(
      'handle_proxy_upstream_request_duration_seconds_bucket{le="0.025",server="http://a"} 1',
    );
    expect(lines).toContain('handle_proxy_upstream_request_duration_seconds_count{server="http://a"} 2');
  });

  it('read the cache size at each scrape', async () => {
    const metrics = createMetrics();
    let entries = 1;
    metrics.registerStoreUsage(() => [{ store: 'found', entries, bytes: 100 * entries }]);
    expect(await metrics.exposition()).toContain('handle_proxy_cache_entries{store="found"} 1');
    entries = 7;
    const text = await metrics.exposition();
    expect(text).toContain('handle_proxy_cache_entries{store="found"} 7');
    expect(text).toContain('handle_proxy_cache_bytes{store="found"} 700');
  });

  it('count evictions, stale responses and failed Redis commands', async () => {
    const lines = await measured((metrics) => {
      metrics.countEviction('notFound');
      metrics.countStale('timeout');
      metrics.countRedisError('get');
    });
    expect(lines).toContain('handle_proxy_cache_evictions_total{store="notFound"} 1');
    expect(lines).toContain('handle_proxy_stale_responses_total{reason="timeout"} 1');
    expect(lines).toContain('handle_proxy_redis_errors_total{command="get"} 1');
  });

  it.each([
    ['open', 'handle_proxy_breaker_open{server="http://a"} 1'],
    ['half-open', 'handle_proxy_breaker_open{server="http://a"} 0'],
    ['closed', 'handle_proxy_breaker_open{server="http://a"} 0'],
  ])('report breaker state %s as %s', async (state, line) => {
    expect(
      await measured((metrics) => {
        metrics.setBreakerState('open', 'http://a');
        metrics.setBreakerState(state, 'http://a');
      }),
    ).toContain(line);
  });

  it.each(['up', 'lost'] as const)('report Redis as %s', async (state) => {
    const lines = await measured((metrics) => {
      metrics.setRedisState('up');
      metrics.setRedisState(state);
    });
    expect(lines).toContain(`handle_proxy_redis_up ${state === 'up' ? 1 : 0}`);
  });

  it('omit the Redis state when no Redis is configured', async () => {
    expect(await measured(() => undefined)).not.toContainEqual(
      expect.stringMatching(/^handle_proxy_redis_up/),
    );
    expect(
      await measured((metrics) => {
        metrics.setRedisState('down');
      }),
    ).toContain('handle_proxy_redis_up 0');
  });

  it('report certificate expiry', async () => {
    const lines = await measured((metrics) => {
      metrics.setCertificateExpiry('https://a', '2026-12-01T00:00:00.000Z');
    });
    expect(lines).toContain(
      'handle_proxy_upstream_certificate_expiry_timestamp_seconds{server="https://a"} 1796083200',
    );
  });

  it('match the metric list', async () => {
    const metrics = createMetrics();
    metrics.add(metricsOf(PLUGINS));
    const text = await metrics.exposition();
    const names = [...text.matchAll(/^# TYPE (handle_proxy_\w+) (\w+)/gm)].map(([, name, type]) => [
      name,
      type,
    ]);
    expect(names.sort()).toEqual(
      allMetrics()
        .map(({ name, type }) => [name, type])
        .sort(),
    );
  });

  it('include process metrics', async () => {
    expect(await createMetrics().exposition()).toContain('process_cpu_seconds_total');
  });

  it('are separate for two proxies in one process', async () => {
    createMetrics().countRedisError('get');
    expect(await createMetrics().exposition()).toContain('redis_errors_total{command="get"} 0');
  });

  it('include all known label combinations at 0 from the start', async () => {
    const lines = await measured((metrics) => {
      metrics.addServer('http://a');
      metrics.add(metricsOf(PLUGINS));
      metrics.counterOf(TRAFFIC_METRICS.rules)({ rule: 'crawlers', result: 'matched' }, 0);
    });
    expect(lines).toEqual(
      expect.arrayContaining([
        'handle_proxy_requests_total{interface="record",result="hit",status="200"} 0',
        'handle_proxy_requests_total{interface="redirect",result="error",status="502"} 0',
        'handle_proxy_request_duration_seconds_count{interface="v2",result="hit"} 0',
        'handle_proxy_upstream_requests_total{server="http://a",outcome="not-found"} 0',
        'handle_proxy_upstream_requests_total{server="http://a",outcome="UPSTREAM_TIMEOUT"} 0',
        'handle_proxy_stale_responses_total{reason="backoff"} 0',
        'handle_proxy_upstream_rejected_total{server="http://a",kind="forwarded"} 0',
        'handle_proxy_redis_errors_total{command="connect"} 0',
        'handle_proxy_cache_evictions_total{store="found"} 0',
        'handle_proxy_audit_total{sample="hit",result="equal"} 0',
        'handle_proxy_changes_dropped_total{destination="feed"} 0',
      ]),
    );
    const counting = allMetrics().filter(({ type }) => type !== 'gauge');
    for (const { name } of counting) {
      expect(
        lines.some((line) => line.startsWith(name)),
        name,
      ).toBe(true);
    }
  });
});
