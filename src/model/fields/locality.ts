/** Where a workload runs: `region/zone/subzone`, parts left out from the right. */

/** Labels of the workload first, then its `istio-locality` label (dots for slashes), then what else is known (§7.2). */
export function localityOf(labels: Readonly<Record<string, string>>, otherwise = ''): string {
  const region = labels['topology.kubernetes.io/region'];
  if (region) {
    return joinLocality(region, labels['topology.kubernetes.io/zone'], labels['topology.istio.io/subzone']);
  }
  const label = labels['istio-locality'];
  return label ? (label.includes('/') ? label : label.replaceAll('.', '/')) : otherwise;
}

/** Stops at the first part that is not known. */
export function joinLocality(...parts: readonly (string | undefined)[]): string {
  const end = parts.findIndex((part) => !part);
  return (end < 0 ? parts : parts.slice(0, end)).join('/');
}
