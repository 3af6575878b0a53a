/** All admission plugins, policies and webhooks of the cluster process the pods. */
import * as E from 'fp-ts/lib/Either.js';
import type { PodFacts, ReadResult } from './cluster-facts.ts';
import { type ClusterFinding, error, okFinding, unknownFinding } from './findings.ts';

const check = 'admission';
const image = 'registry.k8s.io/pause:3.10';
const metadata = { generateName: 'pilot-discovery-check-' };

/** A pod with the init container of a sidecar, which redirects traffic. */
export function redirectingPod(): object {
  const securityContext = {
    ...{ runAsUser: 0, runAsNonRoot: false, runAsGroup: 0, allowPrivilegeEscalation: false },
    capabilities: { add: ['NET_ADMIN', 'NET_RAW'], drop: ['ALL'] },
  };
  return {
    metadata: { ...metadata, labels: { 'sidecar.istio.io/inject': 'false' } },
    spec: {
      initContainers: [{ name: 'istio-init', image, securityContext }],
      containers: [{ name: 'application', image }],
    },
  };
}

export function ordinaryPod(): object {
  return { metadata, spec: { containers: [{ name: 'application', image }] } };
}

export function redirectionFinding(namespace: string, admittedPod: ReadResult<unknown>): ClusterFinding {
  if (E.isRight(admittedPod))
    return okFinding(check, `namespace ${namespace} accepts pods whose init container redirects their traffic`);
  if (isForbiddenToUser(admittedPod.left)) return unknownFinding(check, admittedPod.left);
  return error(
    check,
    `namespace ${namespace} rejects pods whose init container redirects their traffic: ${admittedPod.left}`,
    `Set pod-security.kubernetes.io/enforce=privileged on the namespace, or install istio-cni and set cni.enabled=true.`,
  );
}

export function injectionFinding(namespace: string, admittedPod: ReadResult<PodFacts>): ClusterFinding {
  const name = 'injection';
  if (E.isLeft(admittedPod)) {
    if (isForbiddenToUser(admittedPod.left)) return unknownFinding(name, admittedPod.left);
    const next =
      'Follow the message; if the webhook cannot be called, see the findings about the Deployment and the Service.';
    return error(name, `pods of namespace ${namespace} cannot be created: ${admittedPod.left}`, next);
  }
  const { containers, initContainers = [] } = admittedPod.right.spec;
  if ([...containers, ...initContainers].some(({ name }) => name === 'istio-proxy'))
    return okFinding(name, `pods of namespace ${namespace} are created with a sidecar`);
  return error(
    name,
    `pods of namespace ${namespace} are created without a sidecar`,
    `Compare its labels (kubectl get namespace ${namespace} --show-labels) with the selectors of the webhooks.`,
  );
}

/** Whether the user is not permitted to create pods, so that the pod itself was not rejected. */
const isForbiddenToUser = (message: string): boolean => /cannot create resource "pods"/.test(message);
