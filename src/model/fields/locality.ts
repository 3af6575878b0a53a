/** Locality of a workload: `region/zone/subzone`, without unknown parts at the end. */

/** Reads the workload's topology labels, else its `istio-locality` label (dots for slashes), else uses the default. */
export function localityOf(labels: Readonly<Record<string, string>>, fallback = ''): string {
  const region = labels['topology.kubernetes.io/region'];
  if (region) {
    return joinLocality(region, labels['topology.kubernetes.io/zone'], labels['topology.istio.io/subzone']);
  }
  const label = labels['istio-locality'];
  return label ? (label.includes('/') ? label : label.replaceAll('.', '/')) : fallback;
}

/** Joins the parts before the first unknown one. */
export function joinLocality(...localityParts: readonly (string | undefined)[]): string {
  const firstUnknownIndex = localityParts.findIndex((localityPart) => !localityPart);
  return (firstUnknownIndex < 0 ? localityParts : localityParts.slice(0, firstUnknownIndex)).join('/');
}
