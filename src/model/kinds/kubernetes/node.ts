import { type Decoder, list, text, withDefault } from '../../fields/decode.ts';
import { partialStruct } from './lenient.ts';

export interface KubernetesNode {
  readonly status: NodeStatus;
}

export interface NodeStatus {
  readonly addresses: readonly NodeAddress[];
}

export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

const ignoredStatusFields = [
  ...['allocatable', 'capacity', 'conditions', 'config', 'daemonEndpoints', 'declaredFeatures', 'features'],
  ...['images', 'nodeInfo', 'phase', 'runtimeHandlers', 'volumesAttached', 'volumesInUse'],
];

export const node: Decoder<KubernetesNode> = partialStruct<KubernetesNode>(
  {
    status: withDefault(
      partialStruct<NodeStatus>(
        {
          addresses: withDefault(
            list(partialStruct<NodeAddress>({ type: withDefault(text, ''), address: withDefault(text, '') })),
            [],
          ),
        },
        ignoredStatusFields,
      ),
      { addresses: [] },
    ),
  },
  ['spec'],
);
