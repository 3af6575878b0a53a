/** The API server may call webhooks of several meshes for the same pods. */

import * as E from 'fp-ts/lib/Either.js';
import { callingEntries, webhookEntriesOf } from '../../injection/decision/webhook-entries.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import type { ClusterFacts, WebhookConfigurationFacts, WebhookFacts } from './cluster-facts.ts';
import { type ClusterFinding, error, okFinding, unknownFinding, warning } from './findings.ts';

const check = 'webhooks';
type Labels = Readonly<Record<string, string>>;

const podLabels = (revision: string): readonly Labels[] => [
  {},
  { 'sidecar.istio.io/inject': 'true' },
  { [revisionLabel]: revision || 'default' },
];

export const memberLabels = (revision: string): Labels =>
  revision === '' || revision === 'default' ? { 'istio-injection': 'enabled' } : { [revisionLabel]: revision };

interface ForeignInjector {
  readonly name: string;
  readonly entries: readonly WebhookFacts[];
  /** Whether the injector adds an Istio sidecar, which would be the second one in the pod. */
  readonly isIstioInjector: boolean;
}

export function injectionConflicts(
  { mutatingWebhooks, namespaces }: Pick<ClusterFacts, 'mutatingWebhooks' | 'namespaces'>,
  { namespace, revision }: { readonly namespace: string; readonly revision: string },
): ClusterFinding[] {
  if (E.isLeft(mutatingWebhooks)) return [unknownFinding(check, mutatingWebhooks.left)];
  if (E.isLeft(namespaces)) return [unknownFinding(check, namespaces.left)];
  const foreignWebhooks = foreignInjectors(mutatingWebhooks.right, namespace, revision);
  const ownInjectors = webhookEntriesOf(revision);
  const labelledNamespaces = namespaces.right.map(({ metadata: { name, labels = {} } }) => ({
    place: `namespace ${name}`,
    labels,
    // Checks only pods without labels, because webhooks select labelled pods in most namespaces.
    pods: [{}] as readonly Labels[],
  }));
  const plannedNamespaces = {
    ...{ place: 'namespaces that you add to the mesh', labels: memberLabels(revision) },
    pods: podLabels(revision),
  };
  const findings = foreignWebhooks.flatMap(({ name, entries, isIstioInjector }) => {
    const conflictingPlaces = [...labelledNamespaces, plannedNamespaces].filter(({ labels, pods }) =>
      pods.some(
        (pod) =>
          callingEntries(ownInjectors, labels, pod).length > 0 &&
          callingEntries(entries.map(withDefaultSelectors), labels, pod).length > 0,
      ),
    );
    if (conflictingPlaces.length === 0) return [];
    const placesText = `${conflictingPlaces
      .slice(0, 3)
      .map(({ place }) => place)
      .join(', ')}${conflictingPlaces.length > 3 ? ', …' : ''}`;
    const message = `MutatingWebhookConfiguration ${name} selects the same pods: ${placesText}`;
    const next = `Remove it (kubectl delete mutatingwebhookconfiguration ${name}) or its control plane, or install with --set revision=NAME and label namespaces ${revisionLabel}=NAME.`;
    return [
      isIstioInjector ? error(check, `${message}; they would have two sidecars`, next) : warning(check, message, next),
    ];
  });
  return findings.length > 0 ? findings : [okFinding(check, `no other mesh selects the pods of this revision`)];
}

const withDefaultSelectors = ({ name, namespaceSelector = {}, objectSelector = {} }: WebhookFacts) => ({
  ...{ name, namespaceSelector, objectSelector },
});

function foreignInjectors(
  configurations: readonly WebhookConfigurationFacts[],
  namespace: string,
  revision: string,
): ForeignInjector[] {
  return configurations.flatMap(({ metadata: { name, labels = {} }, webhooks = [] }) => {
    const isOwnRevision = labels[revisionLabel] === (revision || 'default');
    const entries = webhooks.filter(
      (entry) => isInjector(entry, name) && !(isOwnRevision && entry.clientConfig.service?.namespace === namespace),
    );
    const isIstioInjector = entries.some((entry) => entry.name.endsWith('sidecar-injector.istio.io'));
    return entries.length === 0 ? [] : [{ name, entries, isIstioInjector }];
  });
}

/** Decides by the name or path of the webhook. */
function isInjector(
  { name, rules = [], clientConfig: { service, url } }: WebhookFacts,
  configuration: string,
): boolean {
  const isForPods = rules.some(
    ({ resources = [], operations = [] }) =>
      resources.some((resource) => ['pods', '*', '*/*'].includes(resource)) &&
      operations.some((operation) => ['CREATE', '*'].includes(operation)),
  );
  return isForPods && [name, configuration, service?.path, url].some((text) => text?.includes('inject'));
}
