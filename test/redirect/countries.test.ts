// The operator may provide a database of client countries.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadStartConfig } from '../../src/app/config.js';
import { createReload } from '../../src/app/serve.js';
import { createLogger } from '../../src/observe/logger.js';
import { writeCountryDatabase } from '../support/country-database.js';
import { type Leads, startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const place = (name: string, attributes: string): string =>
  `<location href="https://${name}.example.org/" ${attributes}/>`;
const xml = `<locations>${place('plain', '')}${place('us', 'country="us" weight="0"')}${place('de', 'country="de" weight="0"')}</locations>`;
const records = {
  abroad: [value(1, '10320/loc', xml)],
  plain: [value(1, 'URL', 'https://plain.example.org/')],
};
const at = (name: string): [number, string] => [302, `https://${name}.example.org/`];

const COUNTRIES = { '192.0.2.0/24': 'DE', '198.51.100.0/25': 'US' };

describe('location selection by country', () => {
  test('uses the client address unless the query contains a country or an address', async () => {
    const leads = await startLeads(records, {
      REDIRECT_COUNTRY_DATABASE: writeCountryDatabase(COUNTRIES),
      HTTP_TRUSTED_PROXIES: 'loopback',
    });
    const from = async (address: string, query = '') =>
      leads.to(`abroad${query}`, { headers: { 'X-Forwarded-For': address } });
    for (let times = 0; times < 2; times++) {
      expect(await from('192.0.2.77')).toEqual(at('de'));
      expect(await from('198.51.100.1')).toEqual(at('us'));
      expect(await from('::ffff:198.51.100.1')).toEqual(at('us'));
      for (const unknown of ['198.51.100.200', '10.1.2.3', '2001:db8::1', 'garbage']) {
        expect(await from(unknown), unknown).toEqual(at('plain'));
      }
      expect(await from('192.0.2.77', '?ip=198.51.100.1')).toEqual(at('us'));
      expect(await from('192.0.2.77', '?country=us')).toEqual(at('us'));
      expect(await from('192.0.2.77', '?country=')).toEqual(at('plain'));
    }
  });

  test('makes the response private when it depends on the client address', async () => {
    const env = { REDIRECT_COUNTRY_DATABASE: writeCountryDatabase(COUNTRIES) };
    const leads = await startLeads(records, env);
    const control = async (path: string) => (await leads.get(path)).headers['cache-control'];
    for (let times = 0; times < 3; times++) {
      expect(await control('abroad')).toBe('private, max-age=60');
      expect(await control('abroad?country=de')).toBe('public, max-age=60');
      expect(await control('plain')).toBe('public, max-age=60');
    }
  });

  test('keeps the response public when no database is configured', async () => {
    const leads = await startLeads(records);
    expect((await leads.get('abroad')).headers['cache-control']).toBe('public, max-age=60');
  });

  const sourcesOf = (path: string, env: Record<string, string> = {}) => ({
    env: {
      ...{ UPSTREAM_URL: 'http://upstream.test:8000', LOG_LEVEL: 'silent', REDIRECT_COUNTRY_DATABASE: path },
      ...env,
    },
    readFile: () => '',
  });
  /** Reads the configuration, then replaces the database, then applies the configuration. */
  function reloadWith(leads: Leads, path: string, replace: () => void, env?: Record<string, string>): void {
    const running = loadStartConfig(sourcesOf(path)).config;
    const start = loadStartConfig(sourcesOf(path, env));
    replace();
    createReload(running, createLogger({ level: 'silent' }), leads.app.reload)(() => start);
  }

  test('uses a new database after a reload', async () => {
    const path = writeCountryDatabase({ '127.0.0.0/8': 'DE' });
    const leads = await startLeads(records, { REDIRECT_COUNTRY_DATABASE: path });
    expect(await leads.to('abroad')).toEqual(at('de'));
    reloadWith(leads, path, () => writeCountryDatabase({ '127.0.0.0/8': 'US' }, path));
    expect(await leads.to('abroad')).toEqual(at('us'));
  });

  test('keeps the database, and all other settings, if the file breaks after it was checked', async () => {
    const path = writeCountryDatabase({ '127.0.0.0/8': 'DE' });
    const leads = await startLeads(records, { REDIRECT_COUNTRY_DATABASE: path });
    expect(await leads.to('abroad')).toEqual(at('de'));
    const changed = { HTTP_TRUSTED_PROXIES: 'loopback', HTTP_CLIENT_MAX_AGE: '7s' };
    reloadWith(
      leads,
      path,
      () => {
        writeFileSync(path, 'MaxMind.com');
      },
      changed,
    );
    const headers = { 'X-Forwarded-For': '198.51.100.1' };
    expect(await leads.to('abroad', { headers })).toEqual(at('de'));
    expect((await leads.get('plain')).headers['cache-control']).toBe('public, max-age=60');
  });

  test('knows no country in a damaged part of the database', async () => {
    const path = writeCountryDatabase({ '127.0.0.0/8': 'DE' });
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0x7f, 0, bytes.indexOf('MaxMind.com') - 3));
    const leads = await startLeads(records, { REDIRECT_COUNTRY_DATABASE: path });
    expect(await leads.to('abroad')).toEqual(at('plain'));
  });

  test('rejects an invalid country database at startup', () => {
    const path = writeCountryDatabase({});
    writeFileSync(path, 'another format');
    expect(() => loadStartConfig(sourcesOf(path))).toThrow(
      /redirect\.countryDatabase .*country\.mmdb is not a database in the MaxMind format/,
    );
  });
});
