/** Istio objects may have a label that assigns them to one of several control planes. */
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';

interface LabelledObject {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

/** Reports whether an object applies in the control plane of a revision; empty means `default`. */
export function isOfRevision({ metadata: { labels } }: LabelledObject, revision: string): boolean {
  const label = labels?.[revisionLabel];
  return label === undefined || (label || 'default') === (revision || 'default');
}
