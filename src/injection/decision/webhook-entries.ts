/** The entries of a revision's MutatingWebhookConfiguration select the pods that the API server sends to the injector. */

import { type LabelSelector, selectsLabels } from '../../model/kinds/label-selector.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import type { Texts } from '../pod/pod.ts';
import { injectKey, systemNamespaces } from './decision.ts';

export interface WebhookEntry {
  readonly name: string;
  readonly namespaceSelector: LabelSelector;
  readonly objectSelector: LabelSelector;
}

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

const labelIsAbsent = (key: string): Requirement => ({ key, operator: 'DoesNotExist' });
const labelIs = (key: string, value: string): Requirement => ({ key, operator: 'In', values: [value] });
const labelIsNot = (key: string, value: string): Requirement => ({ key, operator: 'NotIn', values: [value] });

const namespaceLabel = 'istio-injection';

/** @param injectsUnlabelled whether namespaces without a label are injected (`enableNamespacesByDefault`) */
export function webhookEntriesOf(revision: string, { injectsUnlabelled = false } = {}): readonly WebhookEntry[] {
  const name = revision || 'default';
  const entry = (prefix: string, namespace: readonly Requirement[], pod: readonly Requirement[]): WebhookEntry => ({
    name: `${prefix}.sidecar-injector.istio.io`,
    namespaceSelector: { matchExpressions: namespace },
    objectSelector: { matchExpressions: pod },
  });
  const isNotDisabled = labelIsNot(injectKey, 'false');
  const revisionEntries = [
    entry('rev.namespace', [labelIs(revisionLabel, name), labelIsAbsent(namespaceLabel)], [isNotDisabled]),
    entry(
      'rev.object',
      [labelIsAbsent(revisionLabel), labelIsAbsent(namespaceLabel)],
      [isNotDisabled, labelIs(revisionLabel, name)],
    ),
  ];
  if (name !== 'default') return revisionEntries;
  const defaultRequirements = [
    entry('namespace', [labelIs(namespaceLabel, 'enabled')], [isNotDisabled]),
    entry(
      'object',
      [labelIsAbsent(namespaceLabel), labelIsAbsent(revisionLabel)],
      [labelIs(injectKey, 'true'), labelIsAbsent(revisionLabel)],
    ),
  ];
  const clusterRequirement: Requirement = {
    key: 'kubernetes.io/metadata.name',
    operator: 'NotIn',
    values: [...systemNamespaces],
  };
  const unlabelledEntry = entry(
    'auto',
    [labelIsAbsent(namespaceLabel), labelIsAbsent(revisionLabel), clusterRequirement],
    [labelIsAbsent(injectKey), labelIsAbsent(revisionLabel)],
  );
  return [...revisionEntries, ...defaultRequirements, ...(injectsUnlabelled ? [unlabelledEntry] : [])];
}

/** Two or more entries would inject the pod twice. */
export function callingEntries(
  entries: readonly WebhookEntry[],
  namespace: Texts,
  pod: Texts,
): readonly WebhookEntry[] {
  return entries.filter(
    ({ namespaceSelector, objectSelector }) =>
      selectsLabels(namespaceSelector, namespace) && selectsLabels(objectSelector, pod),
  );
}
