/** `cluster.v3.Cluster`: the type without the common prefix. */
export function shortType(typeUrl: string): string {
  return typeUrl.replace(/^type\.googleapis\.com\/(envoy\.(config|extensions)\.)?/, '');
}
