/** `networking.istio.io` ProxyConfig, decoded: agent settings of selected workloads. */
export interface ProxyConfigObject {
  readonly selector?: Readonly<Record<string, string>>;
  /** Worker threads; 0: one per processor. */
  readonly concurrency?: number;
  readonly environmentVariables?: Readonly<Record<string, string>>;
  readonly image?: { readonly imageType?: string };
}
