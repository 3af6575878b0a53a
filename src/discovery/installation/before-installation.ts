import * as E from 'fp-ts/lib/Either.js';
import { type KindName, kinds } from '../../model/kinds/index.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import type { ClusterFacts, ClusterNodeFacts, ReadResult, RequiredPermission } from './cluster-facts.ts';
import { type ClusterFinding, error, okFinding, unknownFinding, warning } from './findings.ts';
import { injectionConflicts } from './injection-conflicts.ts';

export interface Installation {
  readonly namespace: string;
  /** Empty for the default revision. */
  readonly revision: string;
}

/** Minimum minor version of Kubernetes, as in `Chart.yaml`. */
const minVersion = 27;
/** Minor version from which the kubelet restarts sidecar init containers. */
const nativeSidecarVersion = 29;
const architectures = ['amd64', 'arm64'];
const istioGroups = [...new Set(Object.values(kinds).map(({ group }) => group))].filter((group) =>
  group.endsWith('istio.io'),
);
const gatewayGroup = 'gateway.networking.k8s.io';
const gatewayVersion = 'v1.6.3';

export function checkBeforeInstallation(
  facts: ClusterFacts,
  missingPermissions: ReadResult<readonly RequiredPermission[]>,
  installation: Installation,
): ClusterFinding[] {
  return [
    versionFinding(facts.version),
    ...permissionFindings(missingPermissions),
    ...definitionFindings(facts),
    gatewayApiFinding(facts),
    ...nodeFindings(facts.nodes),
    ...injectionConflicts(facts, installation),
    ...validatorFindings(facts, installation),
  ];
}

/** Creating a ClusterRole requires its permissions or `escalate`. */
export function requiredPermissions({ namespace }: Installation): readonly RequiredPermission[] {
  const create = (group: string, resource: string, isNamespaced: boolean): RequiredPermission => ({
    ...{ verb: 'create', group, resource },
    ...(isNamespaced && { namespace }),
  });
  const rbac = 'rbac.authorization.k8s.io';
  const admission = 'admissionregistration.k8s.io';
  return [
    create('', 'namespaces', false),
    create('apiextensions.k8s.io', 'customresourcedefinitions', false),
    create(rbac, 'clusterroles', false),
    create(rbac, 'clusterrolebindings', false),
    { verb: 'escalate', group: rbac, resource: 'clusterroles' },
    { verb: 'bind', group: rbac, resource: 'clusterroles' },
    create(admission, 'mutatingwebhookconfigurations', false),
    create(admission, 'validatingwebhookconfigurations', false),
    create('', 'serviceaccounts', true),
    create('', 'services', true),
    create('', 'configmaps', true),
    // Helm stores the release in a Secret.
    create('', 'secrets', true),
    create('apps', 'deployments', true),
    create('policy', 'poddisruptionbudgets', true),
    create(rbac, 'roles', true),
    create(rbac, 'rolebindings', true),
  ];
}

/** @returns `undefined` for other versions than Kubernetes 1 */
export function minorVersionOf(version: string): number | undefined {
  const [, minor] = /^v?1\.(\d+)/.exec(version) ?? [];
  return minor === undefined ? undefined : Number(minor);
}

export function versionFinding(version: ReadResult<string>): ClusterFinding {
  const check = 'API server';
  if (E.isLeft(version)) return unknownFinding(check, version.left);
  const minor = minorVersionOf(version.right);
  const text = `Kubernetes ${version.right}`;
  if (minor === undefined || minor < minVersion)
    return error(check, `${text}: the chart requires 1.${minVersion} or later`, 'Upgrade the cluster.');
  if (minor < nativeSidecarVersion) {
    const message = `${text}: before 1.${nativeSidecarVersion} a sidecar is an ordinary container, so Jobs do not end and init containers bypass it`;
    return warning(check, message, `Upgrade the cluster to 1.${nativeSidecarVersion}, or leave Jobs out of the mesh.`);
  }
  return okFinding(check, text);
}

function permissionFindings(missingPermissions: ReadResult<readonly RequiredPermission[]>): ClusterFinding[] {
  const check = 'permissions';
  if (E.isLeft(missingPermissions)) return [unknownFinding(check, missingPermissions.left)];
  if (missingPermissions.right.length === 0) return [okFinding(check, 'this user may create all objects of the chart')];
  return missingPermissions.right.map(({ verb, group, resource, namespace }) => {
    const missingText = `${verb} ${resource}${group === '' ? '' : `.${group}`}`;
    const namespaceText = namespace === undefined ? '' : ` in namespace ${namespace}`;
    return error(
      check,
      `this user may not ${missingText}${namespaceText}`,
      'Install as an administrator (ClusterRole cluster-admin).',
    );
  });
}

function definitionFindings({ groups, definitions }: ClusterFacts): ClusterFinding[] {
  const check = 'definitions';
  if (E.isLeft(definitions)) return [unknownFinding(check, definitions.left)];
  if (E.isLeft(groups)) return [unknownFinding(check, groups.left)];
  const installedDefinitions = new Map(definitions.right.map((definition) => [definition.metadata.name, definition]));
  const names = (Object.keys(kinds) as KindName[])
    .map((name) => kinds[name])
    .filter(({ group }) => istioGroups.includes(group))
    .map(({ plural, group, versions }) => ({ name: `${plural}.${group}`, group, versions }));
  const presentKinds = names.filter(({ name }) => installedDefinitions.has(name));
  if (presentKinds.length === 0)
    return [okFinding(check, `none of Istio's kinds is defined; helm install defines all ${names.length}`)];
  const missingKinds = names.filter(({ name }) => !installedDefinitions.has(name));
  const owners = [...new Set(presentKinds.map(({ name }) => ownerOf(installedDefinitions.get(name)!.metadata)))].sort();
  const unservedKinds = presentKinds.filter(({ group, versions }) => !groups.right.get(group)?.includes(versions[0]!));
  const apply = 'pilot-discovery crds | kubectl apply --server-side --force-conflicts -f -';
  return [
    okFinding(check, `${presentKinds.length} of ${names.length} of Istio's kinds are defined, by ${owners.join(', ')}`),
    ...(missingKinds.length > 0
      ? [
          warning(
            check,
            `not defined: ${missingKinds.map(({ name }) => name).join(', ')}`,
            `helm install adds them; after an upgrade run: ${apply}`,
          ),
        ]
      : []),
    ...unservedKinds.map(({ name, versions }) =>
      error(check, `${name} is not served in version ${versions[0]}, which the control plane reads`, `Run: ${apply}`),
    ),
  ];
}

function ownerOf({
  labels = {},
  annotations = {},
}: {
  readonly labels?: Labels;
  readonly annotations?: Labels;
}): string {
  const { 'meta.helm.sh/release-name': release, 'meta.helm.sh/release-namespace': namespace } = annotations;
  if (release !== undefined) return `Helm release ${namespace ?? 'default'}/${release}`;
  return labels['app.kubernetes.io/part-of'] ?? labels.app ?? 'an unknown owner';
}

type Labels = Readonly<Record<string, string>>;

function gatewayApiFinding({ groups, definitions }: ClusterFacts): ClusterFinding {
  const check = 'Gateway API';
  if (E.isLeft(groups)) return unknownFinding(check, groups.left);
  const servedVersions = groups.right.get(gatewayGroup);
  const apply = `kubectl apply --server-side -f https://github.com/kubernetes-sigs/gateway-api/releases/download/${gatewayVersion}/standard-install.yaml`;
  if (servedVersions === undefined)
    return warning(check, 'not installed: Gateways of the Gateway API cannot be created', `Run: ${apply}`);
  if (!servedVersions.includes('v1'))
    return error(check, `serves ${servedVersions.join(', ')}; the control plane reads v1`, `Run: ${apply}`);
  const definition = E.isRight(definitions)
    ? definitions.right.find(({ metadata }) => metadata.name === `gateways.${gatewayGroup}`)
    : undefined;
  const annotations = definition?.metadata.annotations ?? {};
  const { [`${gatewayGroup}/bundle-version`]: version, [`${gatewayGroup}/channel`]: channel } = annotations;
  return okFinding(
    check,
    `installed${version === undefined ? '' : `, ${version}`}${channel === undefined ? '' : `, channel ${channel}`}`,
  );
}

function nodeFindings(nodes: ReadResult<readonly ClusterNodeFacts[]>): ClusterFinding[] {
  const check = 'nodes';
  if (E.isLeft(nodes)) return [unknownFinding(check, nodes.left)];
  if (nodes.right.length === 0) return [error(check, 'the cluster has no node', 'Add a Linux node.')];
  const nodeNames = (list: readonly ClusterNodeFacts[]): string => {
    const names = list.slice(0, 5).map(({ metadata }) => metadata.name);
    return `${names.join(', ')}${list.length > 5 ? `, … (${list.length} nodes)` : ''}`;
  };
  const info = ({ status }: ClusterNodeFacts) => status.nodeInfo;
  const linux = nodes.right.filter((node) => info(node).operatingSystem === 'linux');
  const suitableNodes = linux.filter((node) => architectures.includes(info(node).architecture));
  const outdatedNodes = suitableNodes.filter(
    (node) => (minorVersionOf(info(node).kubeletVersion) ?? 0) < nativeSidecarVersion,
  );
  const [otherNodes, unexpectedNodes] = [
    nodes.right.filter((node) => !linux.includes(node)),
    linux.filter((node) => !suitableNodes.includes(node)),
  ];
  const kernels = [...new Set(suitableNodes.map((node) => info(node).kernelVersion))].sort();
  return [
    ...(suitableNodes.length === 0
      ? [error(check, 'no node runs Linux on amd64 or arm64', 'Add such a node.')]
      : [
          okFinding(
            check,
            `${suitableNodes.length} of ${nodes.right.length} run Linux on amd64 or arm64, kernel ${kernels.slice(0, 5).join(', ')}`,
          ),
        ]),
    ...(otherNodes.length > 0
      ? [
          warning(
            check,
            `not Linux: ${nodeNames(otherNodes)}; pods there cannot be in the mesh`,
            'Label pods that run there sidecar.istio.io/inject=false.',
          ),
        ]
      : []),
    ...(unexpectedNodes.length > 0
      ? [
          warning(
            check,
            `no image for the processor of: ${nodeNames(unexpectedNodes)}`,
            'Keep pods of the mesh off them (nodeSelector kubernetes.io/arch).',
          ),
        ]
      : []),
    ...(outdatedNodes.length > 0
      ? [
          warning(
            check,
            `kubelet older than 1.${nativeSidecarVersion}: ${nodeNames(outdatedNodes)}; sidecars are ordinary containers`,
            'Upgrade these nodes.',
          ),
        ]
      : []),
  ];
}

/** Webhooks of other control planes can reject Istio objects. */
function validatorFindings(
  { validatingWebhooks }: ClusterFacts,
  { namespace, revision }: Installation,
): ClusterFinding[] {
  const check = 'validation';
  if (E.isLeft(validatingWebhooks)) return [unknownFinding(check, validatingWebhooks.left)];
  const foreignWebhooks = validatingWebhooks.right.flatMap(({ metadata, webhooks = [] }) => {
    const isOwnRevision = metadata.labels?.[revisionLabel] === (revision || 'default');
    return webhooks
      .filter(
        ({ name, clientConfig: { service } }) =>
          name.endsWith('validation.istio.io') && !(isOwnRevision && service?.namespace === namespace),
      )
      .map(({ clientConfig: { service } }) => ({ name: metadata.name, service }));
  });
  return [...new Map(foreignWebhooks.map((webhook) => [webhook.name, webhook])).values()].map(({ name, service }) =>
    warning(
      check,
      `ValidatingWebhookConfiguration ${name} of ${service?.namespace ?? 'another'}/${service?.name ?? 'server'} also reviews objects of Istio's kinds`,
      `If that control plane is no longer needed: kubectl delete validatingwebhookconfiguration ${name}`,
    ),
  );
}
