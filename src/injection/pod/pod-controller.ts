import type { OwnerReference, Pod } from './pod.ts';
import { labelOf } from './pod.ts';

export interface PodOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/** The name of a CronJob's Job ends with the minute. */
const scheduledJob = /^(.+)-\d{8,10}$/;

/** The controller is a Deployment instead of its ReplicaSet, a CronJob instead of its Job. */
export function workloadOf(pod: Pod): PodOwner {
  const { metadata } = pod;
  const owner = metadata.generateName ? metadata.ownerReferences?.find(({ controller }) => controller) : undefined;
  if (owner === undefined) return { apiVersion: 'v1', kind: 'Pod', name: metadata.name ?? metadata.generateName ?? '' };
  return controllerOf(owner, pod) ?? { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name };
}

function controllerOf(owner: OwnerReference, pod: Pod): PodOwner | undefined {
  switch (owner.kind) {
    case 'ReplicaSet': {
      const rollout = nameWithoutSuffix(owner.name, labelOf(pod, 'rollouts-pod-template-hash'));
      if (rollout !== undefined) return { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', name: rollout };
      const deployment = nameWithoutSuffix(owner.name, labelOf(pod, 'pod-template-hash'));
      return deployment === undefined
        ? undefined
        : { apiVersion: owner.apiVersion, kind: 'Deployment', name: deployment };
    }
    case 'ReplicationController': {
      const name = labelOf(pod, 'deploymentconfig');
      return name === undefined ? undefined : { apiVersion: 'apps.openshift.io/v1', kind: 'DeploymentConfig', name };
    }
    case 'Job': {
      const name = scheduledJob.exec(owner.name)?.[1];
      return name === undefined ? undefined : { apiVersion: 'batch/v1', kind: 'CronJob', name };
    }
    default:
      return undefined;
  }
}

function nameWithoutSuffix(name: string, hash: string | undefined): string | undefined {
  return hash && name.endsWith(`-${hash}`) ? name.slice(0, -hash.length - 1) : undefined;
}
