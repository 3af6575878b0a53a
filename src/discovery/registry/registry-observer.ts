/** Metrics of registries (spec/discovery.md §9.2), all optional. */
export interface RegistryObserver {
  /** `pilot_k8s_reg_events{type,event}`: an object was added, updated or deleted. */
  registryEvent?(kind: string, event: 'add' | 'update' | 'delete'): void;
}

/** Unresolved references of Kubernetes objects. */
export interface KubernetesCounts {
  /** `pilot_k8s_endpoints_pending_pod`: pods of endpoints that are not known yet. */
  readonly pendingPods: number;
  /** `pilot_k8s_endpoints_with_no_pods`, `endpoint_no_pod`: addresses without a pod in services with a selector. */
  readonly endpointsWithoutPod: number;
}
