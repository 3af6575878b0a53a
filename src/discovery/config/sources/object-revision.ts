/** Objects of Istio may be labelled for one control plane of several. */
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';

interface Labelled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}

/** Whether an object applies in the control plane of a revision; empty: `default`. */
export function isOfRevision({ metadata: { labels } }: Labelled, revision: string): boolean {
  const wanted = labels?.[revisionLabel];
  return wanted === undefined || (wanted || 'default') === (revision || 'default');
}
