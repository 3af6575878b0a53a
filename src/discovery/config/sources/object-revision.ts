/** Assigns Istio objects to one of several control planes by a label. */
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';

interface LabelledObject {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

/** Whether the control plane with this revision uses the object. An empty revision means `default`. */
export function hasRevision({ metadata: { labels } }: LabelledObject, revision: string): boolean {
  const label = labels?.[revisionLabel];
  return label === undefined || (label || 'default') === (revision || 'default');
}
