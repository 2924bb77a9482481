import express from 'express';
import { describe, expect, test, vi } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

describe('redirects and pages', () => {
  test('bypass Express for every method, unlike the OpenAPI document', async () => {
    const entered = vi.spyOn(express.application as unknown as { handle: () => void }, 'handle');
    const leads = await startLeads({ abc: [value(1, 'URL', 'https://example.org/')] });
    const ask = async (method: string, target: string): Promise<number> =>
      (await leads.ask(target, { method })).status;
    expect(await ask('GET', '/21.T11998/abc')).toBe(302);
    expect(await ask('HEAD', '/21.T11998/abc?noredirect')).toBe(200);
    expect(await ask('GET', '/21.T11998/none')).toBe(404);
    expect(await ask('OPTIONS', '/21.T11998/abc')).toBe(200);
    expect(await ask('POST', '/21.T11998/abc')).toBe(302);
    expect(await ask('PUT', '/21.T11998/abc')).toBe(405);
    expect(await ask('GET', '/robots.txt')).toBe(200);
    expect(entered).not.toHaveBeenCalled();
    expect(await ask('GET', '/openapi.json')).toBe(200);
    expect(entered).toHaveBeenCalledOnce();
  });
});
