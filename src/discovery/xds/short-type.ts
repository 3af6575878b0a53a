/** Returns the type without the common prefix, such as `cluster.v3.Cluster`. */
export function shortType(typeUrl: string): string {
  return typeUrl.replace(/^type\.googleapis\.com\/(envoy\.(config|extensions)\.)?/, '');
}
