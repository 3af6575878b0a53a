/** What is counted of registries (spec/discovery.md §9.2); all optional. */
export interface RegistryObserver {
  /** `pilot_k8s_reg_events{type,event}`: an object came, changed or went. */
  registryEvent?(kind: string, event: 'add' | 'update' | 'delete'): void;
}

/** What a registry of Kubernetes' objects could not make sense of at this moment. */
export interface KubernetesCounts {
  /** `pilot_k8s_endpoints_pending_pod`: pods that endpoints name and that are not known yet. */
  readonly pendingPods: number;
  /** `pilot_k8s_endpoints_with_no_pods`, `endpoint_no_pod`: addresses of services with a selector without a pod. */
  readonly endpointsWithoutPod: number;
}
