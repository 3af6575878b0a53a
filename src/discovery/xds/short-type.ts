/** `cluster.v3.Cluster`: the name of a type without the prefix that all share. */
export function shortType(typeUrl: string): string {
  return typeUrl.replace(/^type\.googleapis\.com\/(envoy\.(config|extensions)\.)?/, '');
}
