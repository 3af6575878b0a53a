/** Rules of make before break that decide when a cluster is usable, tested separately (machines/discovery/xds/cluster-rollout.ts). */
import { describe, expect, test } from 'vitest';
import type { AdsRequest } from '../../machines/discovery/xds/ads-protocol.ts';
import { clusterType } from '../../machines/discovery/xds/ads-types.ts';
import {
  type NewCluster,
  newRollout,
  withAssignmentsSent,
  withClustersAcknowledged,
} from '../../machines/discovery/xds/cluster-rollout.ts';
import type { Watch } from '../../machines/discovery/xds/watch-record.ts';

const sentCluster = (name: string, nonce: string, needs: NewCluster['needs'] = 'acknowledgement'): NewCluster => ({
  ...{ name, state: 'sent', needs, assignment: name, nonce, stepsLeft: 2 },
});
const emptyRollout = { ...newRollout, newClusters: [sentCluster('a', '1'), sentCluster('b', '2')] };
const watch = { nonceSent: '2', nonceRejected: '' } as Watch;
const base = { typeUrl: clusterType, rejection: null };
const sotwRequest = (nonce: string): AdsRequest =>
  ({ ...base, protocol: 'sotw', nonce, names: [] }) as unknown as AdsRequest;
const deltaRequest = (nonce: string): AdsRequest =>
  ({
    ...base,
    protocol: 'delta',
    nonce,
    subscribe: [],
    unsubscribe: [],
    known: [],
    knownVersions: [],
  }) as unknown as AdsRequest;
const namesOf = ({ newClusters }: { newClusters: readonly NewCluster[] }): string[] =>
  newClusters.map(({ name }) => name);

describe('an ACK of clusters', () => {
  test('counts for all earlier responses if it is for the newest one, because state-of-the-world clients send no others', () => {
    expect(namesOf(withClustersAcknowledged(emptyRollout, sotwRequest('2'), watch))).toEqual([]);
  });

  test('is stale if it is for an earlier response in state of the world, but counts for that response in delta', () => {
    expect(namesOf(withClustersAcknowledged(emptyRollout, sotwRequest('1'), watch))).toEqual(['a', 'b']);
    expect(namesOf(withClustersAcknowledged(emptyRollout, deltaRequest('1'), watch))).toEqual(['b']);
  });

  test('has no effect if it is for an unknown response', () => {
    expect(namesOf(withClustersAcknowledged(emptyRollout, deltaRequest('0'), watch))).toEqual(['a', 'b']);
  });
});

test('an endpoint response makes those clusters usable that only need an assignment in it', () => {
  const newClusters = [sentCluster('a', '1', 'assignment'), sentCluster('b', '1', 'assignment'), sentCluster('c', '1')];
  const next = withAssignmentsSent({ ...newRollout, newClusters }, (name) => name !== 'b');
  expect(namesOf(next)).toEqual(['b', 'c']);
});
