// Limits on lock queue places, by identity and by network.
import { describe, expect, it } from 'vitest';
import { LockPlaces } from '../../src/write/lock/lock-places.js';

const writer = (client: string, network = '192.0.2.0/24', prefix = '21.T1') => ({ client, network, prefix });

describe('lock queue places', () => {
  it('are limited to one per login for ten seconds after it was rejected for this prefix', () => {
    let nowMs = 1000;
    const places = new LockPlaces(() => nowMs);
    places.refuse(writer('300:A/B'));
    const giveBack = places.take(writer('300:A/B'));
    expect(giveBack).toBeDefined();
    expect(places.take(writer('300:A/B'))).toBeUndefined();
    expect(places.take(writer('300:A/B', '192.0.2.0/24', '21.T2'))).toBeDefined();
    expect(places.take(writer('300:A/C'))).toBeDefined();
    giveBack?.();
    expect(places.take(writer('300:A/B'))).toBeDefined();
    expect(places.take(writer('300:A/B'))).toBeUndefined();
    nowMs += 10_001;
    expect(places.take(writer('300:A/B'))).toBeDefined();
  });

  it('are limited to 256 per network for any number of logins', () => {
    const places = new LockPlaces(() => 0);
    for (let at = 0; at < 256; at++) expect(places.take(writer(`300:A/${at}`))).toBeDefined();
    expect(places.take(writer('300:A/new'))).toBeUndefined();
    expect(places.take(writer('300:A/new', '198.51.100.0/24'))).toBeDefined();
  });
});
