// Names of the channels, and which of them each master serves.
import slotOf from 'cluster-key-slot';
import { GROUPS } from '../coherence/groups.js';
import type { Group } from '../coherence/group-numbers.js';
import type { RedisMaster } from './connections.js';

export const GROUP_NAMES: readonly Group[] = ['bans', ...Array.from({ length: GROUPS }, (_, group) => group)];

export interface Channels {
  /** The command that publishes: in a cluster sharded, as a message on the bus of a cluster may be lost. */
  publish: 'PUBLISH' | 'SPUBLISH';
  ofGroup: (group: Group) => string;
  /** For acknowledgements to the member. */
  ofMember: (member: string) => string;
  /** What a member subscribes to at the master. */
  at: (master: RedisMaster, member: string) => string[];
}

export function createChannels(prefix: string, isCluster: boolean): Channels {
  const ofMember = (member: string): string => `${prefix}{acks:${member}}`;
  if (!isCluster) {
    const messages = `${prefix}messages`;
    return {
      publish: 'PUBLISH',
      ofGroup: () => messages,
      ofMember,
      at: (_master, id) => [messages, ofMember(id)],
    };
  }
  const ofGroup = (group: Group): string => `${prefix}{${group}}`;
  return {
    publish: 'SPUBLISH',
    ofGroup,
    ofMember,
    at: (master, id) =>
      [...GROUP_NAMES.map(ofGroup), ofMember(id)].filter((channel) => master.holds(slotOf(channel))),
  };
}
