/** Which namespaces take part in the mesh: `discoverySelectors` (spec/discovery.md §3.2). */
import { type LabelSelector, selectsLabels } from '../../kinds/label-selector.ts';

type Labels = Readonly<Record<string, string>>;

/** Without selectors every namespace takes part; with several, one that any of them selects. */
export function isDiscovered(
  namespace: string,
  labels: Labels | undefined,
  selectors: readonly LabelSelector[],
): boolean {
  if (selectors.length === 0) return true;
  // Clusters label each namespace with its name; one that no object describes has that label alone.
  const known = { 'kubernetes.io/metadata.name': namespace, ...labels };
  return selectors.some((selector) => selectsLabels(selector, known));
}
