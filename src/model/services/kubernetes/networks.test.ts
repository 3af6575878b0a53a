import { expect, it } from 'vitest';
import type { MeshNetworks, NetworkEndpoints } from '../../mesh/mesh-networks.ts';
import { ClusterNetworks } from './networks.ts';

const meshNetworks = (...endpoints: readonly NetworkEndpoints[]): MeshNetworks => ({
  networks: { mesh: { endpoints, gateways: [] } },
});
const address = '10.0.0.1';

it.each<[string, MeshNetworks, string, string]>([
  ['the label of the system namespace', meshNetworks(), 'labelled', 'labelled'],
  [
    'the label of the system namespace rather than the mesh network of the cluster',
    meshNetworks({ fromRegistry: 'c1' }),
    'labelled',
    'labelled',
  ],
  [
    'the label of the system namespace rather than the mesh network of the address range',
    meshNetworks({ fromCidr: '10.0.0.0/8' }),
    'labelled',
    'labelled',
  ],
  ['the mesh network of the cluster if there is no label', meshNetworks({ fromRegistry: 'c1' }), '', 'mesh'],
  ['the mesh network of the address range if there is no label', meshNetworks({ fromCidr: '10.0.0.0/8' }), '', 'mesh'],
  [
    'unknown if there is neither a label nor a matching mesh network',
    meshNetworks({ fromRegistry: 'c2' }, { fromCidr: '10.1.0.0/16' }),
    '',
    '',
  ],
])('the network of an address is %s', (_, networks, label, expected) => {
  expect(new ClusterNetworks(networks, 'c1', label).networkOf(address)).toBe(expected);
});

it('an invalid address has no network', () => {
  expect(new ClusterNetworks(meshNetworks({ fromCidr: '10.0.0.0/8' }), 'c1', '').networkOf('010.0.0.1')).toBe('');
});
