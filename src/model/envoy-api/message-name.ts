/** Returns `envoy.config.cluster.v3.Cluster` for `type.googleapis.com/envoy.config.cluster.v3.Cluster`. */
export function messageNameOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}
