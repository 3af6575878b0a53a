import { expect, test } from 'vitest';
import { supportsNativeSidecars } from '../decision/native-sidecars.ts';
import { openShiftIdentity } from './openshift.ts';

const users = 'openshift.io/sa.scc.uid-range';
const groups = 'openshift.io/sa.scc.supplemental-groups';

test.each([
  ['first and count', { [users]: '1000620000/10000' }, { uid: 1_000_629_999, gid: 1_000_629_999 }],
  ['first and last', { [users]: '1000620000-1000620009' }, { uid: 1_000_620_009, gid: 1_000_620_009 }],
  ['separate groups', { [users]: '1000/10', [groups]: '2000/10,9/1' }, { uid: 1_009, gid: 2_009 }],
  ['no annotation', {}, undefined],
  ['a range without end', { [users]: '1000/' }, undefined],
  ['an empty range', { [users]: '1000/0' }, undefined],
  ['an id above the maximum of Kubernetes', { [users]: '4294967295/4' }, undefined],
])('the ProxyUID of a namespace with $0 is $2 (§2.1)', (_, annotations, expected) => {
  expect(openShiftIdentity(annotations as Record<string, string>)).toEqual(expected);
});

test.each([
  ['a new node of the pod among old ones', 'v1.33.0', ['v1.29.3'], true],
  ['an old node of the pod', 'v1.32.9', ['v1.34.0'], false],
  ['an old node among new ones', undefined, ['v1.34.0', 'v1.30.1'], false],
  ['new nodes', undefined, ['v1.33.4-gke.1', '2.0'], true],
  ['an unknown set of nodes', undefined, [], true],
  ['an invalid version', undefined, ['unknown'], false],
])('NativeSidecars is $3 for $0 (§2.1)', (_, podVersion, nodeVersions, expected) => {
  expect(supportsNativeSidecars(podVersion, nodeVersions)).toBe(expected);
});
