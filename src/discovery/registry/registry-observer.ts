export interface RegistryObserver {
  /** `pilot_k8s_reg_events{type,event}` */
  registryEvent?(kind: string, event: 'add' | 'update' | 'delete'): void;
}

export interface KubernetesCounts {
  /** Pods of endpoints that are not known yet (`pilot_k8s_endpoints_pending_pod`). */
  readonly pendingPods: number;
  /** Addresses without a pod in services with a selector (`endpoint_no_pod`). */
  readonly endpointsWithoutPod: number;
}
