import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/load.js';
import type { TrafficConfig } from '../../src/plugins/traffic/plugin.js';
import { configFrom } from '../support/load-config.js';

const rulesFrom = (rules: string) =>
  (configFrom({ yaml: `traffic:\n  rules: ${rules}` }) as TrafficConfig).traffic.rules;

describe('traffic.rules configuration', () => {
  it('accepts single strings and lists, and adds defaults', () => {
    expect(
      rulesFrom(`[{ name: a, match: { userAgent: 'x, y', method: [GET, HEAD] }, limit: { perMinute: 5 } }]`),
    ).toEqual([
      {
        name: 'a',
        match: { userAgent: ['x, y'], method: ['GET', 'HEAD'] },
        limit: { perMinute: 5, by: 'address' },
        log: false,
        shadow: false,
        robot: false,
      },
    ]);
  });

  it.each([
    ['[{ match: {} }]', 'give a name of 1 to 64'],
    ['[{ name: a }, { name: a }]', 'a unique name'],
    ['[{ name: a, limit: {} }]', 'either perSecond or perMinute'],
    ['[{ name: a, limit: { perSecond: 1, perMinute: 1 } }]', 'either perSecond or perMinute'],
    ['[{ name: a, limit: { perSecond: 1, by: country } }]', 'give one of address, network, rule'],
    ['[{ name: a, match: { prefix: 20.500 } }]', 'in quotes'],
    ['[{ name: a, match: { network: loopback } }]', 'IP addresses and networks'],
    ['[{ name: a, match: { interface: ldap } }]', 'record, v2, redirect, list, native'],
    ['[{ name: a, answer: 503 }]', 'give 429 or 403'],
    ['[{ name: a, class: best }]', 'give one of preferred, normal, background'],
    ['[{ name: a, allow: true }]', 'allow'],
  ])('rejects %s with "%s"', (rules, text) => {
    expect(() => rulesFrom(rules)).toThrow(ConfigError);
    expect(() => rulesFrom(rules)).toThrow(text);
  });
});
