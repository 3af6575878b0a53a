import { type LabelSelector, selectsLabels } from '../../kinds/label-selector.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Whether a namespace belongs to the mesh: `discoverySelectors` (spec/discovery.md §3.2). Selectors are ORed; without selectors every
 * namespace matches.
 */
export function isDiscovered(
  namespace: string,
  labels: Labels | undefined,
  selectors: readonly LabelSelector[],
): boolean {
  if (selectors.length === 0) return true;
  // Clusters label each namespace with its name; a namespace without a known object has only that label.
  const known = { 'kubernetes.io/metadata.name': namespace, ...labels };
  return selectors.some((selector) => selectsLabels(selector, known));
}
