import { type Decoder, integer, list, required, text, withDefault } from '../../fields/decode.ts';
import { maxPodContainers } from '../object-limits.ts';
import { partialStruct } from './lenient.ts';

export interface KubernetesPod {
  readonly spec: KubernetesPodSpec;
  readonly status: PodStatus;
}

export interface KubernetesPodSpec {
  readonly nodeName: string;
  readonly serviceAccountName: string;
  readonly hostname: string;
  readonly subdomain: string;
  readonly containers: readonly KubernetesContainer[];
  readonly initContainers: readonly InitContainer[];
}

export interface KubernetesContainer {
  readonly ports: readonly KubernetesContainerPort[];
}

export interface InitContainer extends KubernetesContainer {
  /** `Always` makes an init container a native sidecar, which runs as long as the pod. */
  readonly restartPolicy: string;
}

export interface KubernetesContainerPort {
  readonly name: string;
  readonly containerPort: number;
  readonly protocol: string;
}

export interface PodStatus {
  /** Only pods that run or will run soon are used. */
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
    partialStruct<KubernetesContainerPort>(
      {
        name: withDefault(text, ''),
        containerPort: required(integer(1, 65535)),
        protocol: withDefault(text, 'TCP'),
      },
      ['hostIP', 'hostPort'],
    ),
  ),
  [],
);

const ignoredContainerFields = [
  ...['args', 'command', 'env', 'envFrom', 'image', 'imagePullPolicy', 'lifecycle', 'livenessProbe', 'name'],
  ...['readinessProbe', 'resizePolicy', 'resources', 'restartPolicy', 'restartPolicyRules', 'securityContext'],
  ...['startupProbe', 'stdin', 'stdinOnce', 'terminationMessagePath', 'terminationMessagePolicy', 'tty'],
  ...['volumeDevices', 'volumeMounts', 'workingDir'],
];
const ignoredSpecFields = [
  ...['activeDeadlineSeconds', 'affinity', 'automountServiceAccountToken', 'dnsConfig', 'dnsPolicy'],
  ...['enableServiceLinks', 'ephemeralContainers', 'hostAliases', 'hostIPC', 'hostNetwork', 'hostPID', 'hostUsers'],
  ...['hostnameOverride', 'imagePullSecrets', 'nodeSelector', 'os', 'overhead', 'preemptionPolicy', 'priority'],
  ...['priorityClassName', 'readinessGates', 'resourceClaims', 'resources', 'restartPolicy', 'runtimeClassName'],
  ...['schedulerName', 'schedulingGates', 'securityContext', 'serviceAccount', 'setHostnameAsFQDN'],
  ...['shareProcessNamespace', 'terminationGracePeriodSeconds', 'tolerations', 'topologySpreadConstraints'],
  ...['volumes', 'workloadRef'],
];
const ignoredConditionFields = ['lastProbeTime', 'lastTransitionTime', 'message', 'observedGeneration', 'reason'];
const ignoredStatusFields = [
  ...['containerStatuses', 'ephemeralContainerStatuses', 'extendedResourceClaimStatus', 'hostIP', 'hostIPs'],
  ...['initContainerStatuses', 'message', 'nominatedNodeName', 'observedGeneration', 'qosClass', 'reason'],
  ...['resize', 'resourceClaimStatuses', 'startTime'],
];

const emptyStatus: PodStatus = { phase: '', podIP: '', podIPs: [], conditions: [] };

export const pod: Decoder<KubernetesPod> = partialStruct<KubernetesPod>({
  spec: required(
    partialStruct<KubernetesPodSpec>(
      {
        nodeName: withDefault(text, ''),
        serviceAccountName: withDefault(text, ''),
        hostname: withDefault(text, ''),
        subdomain: withDefault(text, ''),
        containers: withDefault(
          list(partialStruct<KubernetesContainer>({ ports }, ignoredContainerFields), maxPodContainers),
          [],
        ),
        initContainers: withDefault(
          list(
            partialStruct<InitContainer>({ ports, restartPolicy: withDefault(text, '') }, ignoredContainerFields),
            maxPodContainers,
          ),
          [],
        ),
      },
      ignoredSpecFields,
    ),
  ),
  status: withDefault(
    partialStruct<PodStatus>(
      {
        phase: withDefault(text, ''),
        podIP: withDefault(text, ''),
        podIPs: withDefault(list(partialStruct<{ ip: string }>({ ip: required(text) }), maxPodContainers), []),
        conditions: withDefault(
          list(
            partialStruct<PodCondition>(
              { type: withDefault(text, ''), status: withDefault(text, '') },
              ignoredConditionFields,
            ),
          ),
          [],
        ),
      },
      ignoredStatusFields,
    ),
    emptyStatus,
  ),
});
