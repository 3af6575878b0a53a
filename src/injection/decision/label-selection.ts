import { type LabelSelector, selectsLabels } from '../../model/kinds/label-selector.ts';
import type { Texts } from '../pod/pod.ts';

/** A selector without requirements matches no pod, unlike in Kubernetes, where it selects every pod. */
export function matchesPod(selector: LabelSelector, labels: Texts): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return Object.keys(matchLabels).length + matchExpressions.length > 0 && selectsLabels(selector, labels);
}
