/** Kubernetes' Pod (spec/discovery.md §5.4): a workload, as far as its place and its ports go. */
import { boolean, type Decoder, integer, list, required, text, withDefault } from '../../fields/decode.ts';
import { maxPodContainers } from '../object-limits.ts';
import { reading } from './lenient.ts';

export interface Pod {
  readonly spec: PodSpec;
  readonly status: PodStatus;
}

export interface PodSpec {
  readonly nodeName: string;
  readonly serviceAccountName: string;
  readonly hostNetwork: boolean;
  readonly hostname: string;
  readonly subdomain: string;
  readonly containers: readonly Container[];
  readonly initContainers: readonly InitContainer[];
}

export interface Container {
  readonly ports: readonly ContainerPort[];
}

export interface InitContainer extends Container {
  /** `Always`: a sidecar, which runs as long as the pod. */
  readonly restartPolicy: string;
}

export interface ContainerPort {
  readonly name: string;
  readonly containerPort: number;
  readonly protocol: string;
}

export interface PodStatus {
  /** Only a pod that runs, or is about to, counts. */
  readonly phase: string;
  readonly podIP: string;
  readonly podIPs: readonly { readonly ip: string }[];
  readonly conditions: readonly PodCondition[];
}

export interface PodCondition {
  readonly type: string;
  readonly status: string;
}

const ports = withDefault(
  list(
    reading<ContainerPort>({
      name: withDefault(text, ''),
      containerPort: required(integer(1, 65535)),
      protocol: withDefault(text, 'TCP'),
    }),
  ),
  [],
);

const noStatus: PodStatus = { phase: '', podIP: '', podIPs: [], conditions: [] };

export const pod: Decoder<Pod> = reading<Pod>({
  spec: required(
    reading<PodSpec>({
      nodeName: withDefault(text, ''),
      serviceAccountName: withDefault(text, ''),
      hostNetwork: withDefault(boolean, false),
      hostname: withDefault(text, ''),
      subdomain: withDefault(text, ''),
      containers: withDefault(list(reading<Container>({ ports }), maxPodContainers), []),
      initContainers: withDefault(
        list(reading<InitContainer>({ ports, restartPolicy: withDefault(text, '') }), maxPodContainers),
        [],
      ),
    }),
  ),
  status: withDefault(
    reading<PodStatus>({
      phase: withDefault(text, ''),
      podIP: withDefault(text, ''),
      podIPs: withDefault(list(reading<{ ip: string }>({ ip: required(text) }), maxPodContainers), []),
      conditions: withDefault(
        list(reading<PodCondition>({ type: withDefault(text, ''), status: withDefault(text, '') })),
        [],
      ),
    }),
    noStatus,
  ),
});
