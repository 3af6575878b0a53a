import { type LabelSelector, selectsLabels } from '../../kinds/label-selector.ts';

type Labels = Readonly<Record<string, string>>;

/** Without `discoverySelectors`, all namespaces match. */
export function isDiscovered(
  namespace: string,
  labels: Labels | undefined,
  selectors: readonly LabelSelector[],
): boolean {
  if (selectors.length === 0) return true;
  // Kubernetes sets this label on every namespace. A namespace whose object is unknown has only this label.
  const namespaceLabels = { 'kubernetes.io/metadata.name': namespace, ...labels };
  return selectors.some((selector) => selectsLabels(selector, namespaceLabels));
}
