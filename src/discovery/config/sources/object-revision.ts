/** A label assigns Istio objects to one of several control planes. */
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';

interface LabelledObject {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

/** An empty revision means `default`. */
export function hasRevision({ metadata: { labels } }: LabelledObject, revision: string): boolean {
  const label = labels?.[revisionLabel];
  return label === undefined || (label || 'default') === (revision || 'default');
}
