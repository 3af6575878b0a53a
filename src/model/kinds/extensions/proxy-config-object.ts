export interface ProxyConfigObject {
  readonly selector?: Readonly<Record<string, string>>;
  /** Number of worker threads; 0 means one per processor. */
  readonly concurrency?: number;
  readonly environmentVariables?: Readonly<Record<string, string>>;
  readonly image?: { readonly imageType?: string };
}
