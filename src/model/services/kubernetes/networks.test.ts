import { expect, it } from 'vitest';
import type { MeshNetworks, NetworkEndpoints } from '../../mesh/mesh-networks.ts';
import { ClusterNetworks } from './networks.ts';

const meshNetworks = (...endpoints: readonly NetworkEndpoints[]): MeshNetworks => ({
  networks: { mesh: { endpoints, gateways: [] } },
});
const address = '10.0.0.1';

it.each<[string, MeshNetworks, string, string]>([
  ['that is the label of its system namespace', meshNetworks(), 'labelled', 'labelled'],
  [
    'that is this label, before the mesh network of its cluster',
    meshNetworks({ fromRegistry: 'c1' }),
    'labelled',
    'labelled',
  ],
  [
    'that is this label, before the mesh network of its range',
    meshNetworks({ fromCidr: '10.0.0.0/8' }),
    'labelled',
    'labelled',
  ],
  ['that is otherwise the mesh network of its cluster', meshNetworks({ fromRegistry: 'c1' }), '', 'mesh'],
  ['that is otherwise the mesh network of its range', meshNetworks({ fromCidr: '10.0.0.0/8' }), '', 'mesh'],
  ['that is otherwise unknown', meshNetworks({ fromRegistry: 'c2' }, { fromCidr: '10.1.0.0/16' }), '', ''],
])('an address has a network %s', (_, networks, label, expected) => {
  expect(new ClusterNetworks(networks, 'c1', label).networkOf(address)).toBe(expected);
});

it('an invalid address has no network', () => {
  expect(new ClusterNetworks(meshNetworks({ fromCidr: '10.0.0.0/8' }), 'c1', '').networkOf('010.0.0.1')).toBe('');
});
