/** `networking.istio.io` ProxyConfig, decoded: settings of the agents of some workloads. */
export interface ProxyConfigObject {
  /** Labels of workloads. */
  readonly selector?: Readonly<Record<string, string>>;
  /** Worker threads; 0: as many as processors. */
  readonly concurrency?: number;
  readonly environmentVariables?: Readonly<Record<string, string>>;
  readonly image?: { readonly imageType?: string };
}
