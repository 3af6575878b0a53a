import type { X509Certificate } from 'node:crypto';
import * as E from 'fp-ts/lib/Either.js';
import { certificatesIn } from '../../identity/pem.ts';
import { decodeInjectionValues } from '../../injection/settings.decode.ts';
import { imageReference } from '../../injection/template/template-input.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import type { ObjectMeta } from '../kubernetes/api-server.ts';
import type { Installation } from './before-installation.ts';
import type {
  ClusterFacts,
  ConfigMapFacts,
  DeploymentFacts,
  InstalledFacts,
  PodFacts,
  ReadResult,
  SliceFacts,
  WebhookConfigurationFacts,
} from './cluster-facts.ts';
import { type ClusterFinding, error, okFinding, unknownFinding, warning } from './findings.ts';
import { memberLabels } from './injection-conflicts.ts';

const proxyName = 'istio-proxy';
const injectLabel = 'sidecar.istio.io/inject';

/** The name must match the Helm chart. */
export const planeName = (revision: string): string => (revision === '' ? 'istiod' : `istiod-${revision}`);

export function membersOf(
  { namespaces, mutatingWebhooks }: Pick<ClusterFacts, 'namespaces' | 'mutatingWebhooks'>,
  { namespace, revision }: Installation,
): readonly string[] {
  if (E.isLeft(namespaces)) return [];
  const names = [revision || 'default', ...tagsOf(mutatingWebhooks, namespace, revision)];
  return namespaces.right
    .filter(({ metadata: { labels = {} } }) => {
      const { 'istio-injection': injection, [revisionLabel]: chosenRevision } = labels;
      if (injection !== undefined) return injection === 'enabled' && names.includes('default');
      return chosenRevision !== undefined && names.includes(chosenRevision);
    })
    .map(({ metadata }) => metadata.name);
}

function tagsOf(mutatingWebhooks: ClusterFacts['mutatingWebhooks'], namespace: string, revision: string): string[] {
  return ownConfigurations(mutatingWebhooks, namespace, revision).flatMap(
    ({ metadata }) => metadata.labels?.['istio.io/tag'] ?? [],
  );
}

function ownConfigurations(
  configurations: ReadResult<readonly WebhookConfigurationFacts[]>,
  namespace: string,
  revision: string,
): readonly WebhookConfigurationFacts[] {
  if (E.isLeft(configurations)) return [];
  return configurations.right.filter(
    ({ metadata, webhooks = [] }) =>
      metadata.labels?.[revisionLabel] === (revision || 'default') &&
      webhooks.some(({ clientConfig: { service, url } }) => url !== undefined || service?.namespace === namespace),
  );
}

/** @param now Unix time in milliseconds */
export function checkAfterInstallation(
  facts: ClusterFacts,
  installedFacts: InstalledFacts,
  installation: Installation,
  now: number,
): ClusterFinding[] {
  const members = membersOf(facts, installation);
  return [
    ...deploymentFindings(facts.deployments, installation),
    ...serviceFindings(installedFacts.slices, installation),
    ...webhookFindings(facts, installedFacts.rootOfMesh, installation, now),
    ...namespaceFindings(facts, members, installation),
    ...members.flatMap((member) => podFindings(member, installedFacts.pods.get(member)!)),
    ...versionFindings(installedFacts, members),
  ];
}

function planeOf(deployments: readonly DeploymentFacts[], revision: string): DeploymentFacts | undefined {
  return deployments.find(({ metadata }) => metadata.name === planeName(revision));
}

function deploymentFindings(
  deployments: ClusterFacts['deployments'],
  { namespace, revision }: Installation,
): ClusterFinding[] {
  const check = 'deployment';
  if (E.isLeft(deployments)) return [unknownFinding(check, deployments.left)];
  const planeDeployment = planeOf(deployments.right, revision);
  const name = planeName(revision);
  if (planeDeployment === undefined)
    return [error(check, `no Deployment ${name} in namespace ${namespace}`, 'Install the chart: docs/install.md.')];
  const { replicas = 1 } = planeDeployment.spec;
  const readyReplicas = planeDeployment.status?.readyReplicas ?? 0;
  const text = `${name}: ${readyReplicas} of ${replicas} replicas are ready`;
  const next = `Run: kubectl -n ${namespace} describe pods -l app=istiod,${revisionLabel}=${revision || 'default'}`;
  if (replicas === 0)
    return [
      error(check, `${name} has no replicas`, `Run: kubectl -n ${namespace} scale deployment/${name} --replicas 2`),
    ];
  if (readyReplicas === 0) return [error(check, text, next)];
  return [readyReplicas < replicas ? warning(check, text, next) : okFinding(check, text)];
}

function serviceFindings(
  slices: ReadResult<readonly SliceFacts[]>,
  { namespace, revision }: Installation,
): ClusterFinding[] {
  const check = 'service';
  if (E.isLeft(slices)) return [unknownFinding(check, slices.left)];
  const endpoints = slices.right.flatMap(({ endpoints }) => endpoints ?? []);
  const readyCount = endpoints.filter(({ conditions }) => conditions?.ready !== false).length;
  const name = `${planeName(revision)}.${namespace}`;
  if (readyCount > 0) return [okFinding(check, `${name} has ${readyCount} ready endpoints`)];
  return [
    error(
      check,
      `${name} has no ready endpoint: webhooks and proxies cannot reach the control plane`,
      `Run: kubectl -n ${namespace} get service,endpointslices,pods`,
    ),
  ];
}

function webhookFindings(
  { mutatingWebhooks, validatingWebhooks }: ClusterFacts,
  rootOfMesh: ReadResult<ConfigMapFacts | undefined>,
  { namespace, revision }: Installation,
  now: number,
): ClusterFinding[] {
  const check = 'webhook';
  if (E.isLeft(mutatingWebhooks)) return [unknownFinding(check, mutatingWebhooks.left)];
  const injectors = ownConfigurations(mutatingWebhooks, namespace, revision);
  const ownWebhooks = [...injectors, ...ownConfigurations(validatingWebhooks, namespace, revision)];
  if (injectors.length === 0) {
    const message = `no MutatingWebhookConfiguration of revision ${revision || 'default'} calls namespace ${namespace}: no pod is injected`;
    return [
      error(
        check,
        message,
        'Install the chart with sidecarInjectorWebhook.enabled=true and an authority (authority.selfSigned=true).',
      ),
    ];
  }
  const root = E.isRight(rootOfMesh) ? rootOfMesh.right?.data?.['root-cert.pem'] : undefined;
  return ownWebhooks.map((configuration) => bundleFinding(configuration, root, now, namespace));
}

function bundleFinding(
  { metadata: { name }, webhooks = [] }: WebhookConfigurationFacts,
  root: string | undefined,
  now: number,
  namespace: string,
): ClusterFinding {
  const check = 'webhook';
  const next = `The elected replica writes the bundle. Run: kubectl -n ${namespace} logs -l app=istiod --tail 100`;
  const emptyBundles = webhooks.filter(({ clientConfig }) => !clientConfig.caBundle);
  if (emptyBundles.length > 0)
    return error(
      check,
      `${name}: ${emptyBundles.length} of ${webhooks.length} entries have no caBundle, so the API server cannot call them`,
      next,
    );
  const bundles = [...new Set(webhooks.map(({ clientConfig }) => clientConfig.caBundle!))];
  const certificates = bundles.flatMap((bundle) =>
    readableCertificates(Buffer.from(bundle, 'base64').toString('utf8')),
  );
  if (certificates.length === 0) return error(check, `${name}: caBundle contains no certificate`, next);
  if (certificates.every(({ validTo }) => Date.parse(validTo) <= now))
    return error(check, `${name}: all certificates of caBundle have expired`, next);
  const fingerprints = new Set(certificates.map(({ fingerprint256 }) => fingerprint256));
  const roots = readableCertificates(root ?? '');
  if (root !== undefined && !roots.some(({ fingerprint256 }) => fingerprints.has(fingerprint256)))
    return error(check, `${name}: caBundle does not contain the root of the mesh (ConfigMap istio-ca-root-cert)`, next);
  return okFinding(check, `${name}: all entries (${webhooks.length}) trust the root of the mesh`);
}

/** Empty for invalid PEM, which the API server cannot read either. */
function readableCertificates(pem: string): X509Certificate[] {
  try {
    return certificatesIn(pem);
  } catch {
    return [];
  }
}

function namespaceFindings(
  { namespaces, mutatingWebhooks }: ClusterFacts,
  members: readonly string[],
  installation: Installation,
): ClusterFinding[] {
  const check = 'namespaces';
  if (E.isLeft(namespaces)) return [unknownFinding(check, namespaces.left)];
  const [label] = Object.entries(memberLabels(installation.revision));
  const labelCommand = `kubectl label namespace NAME ${label!.join('=')}`;
  const findings = [
    members.length > 0
      ? okFinding(check, `in the mesh: ${members.join(', ')}`)
      : warning(check, 'no namespace is in the mesh', `Run: ${labelCommand}`),
  ];
  const installedRevisions = E.isRight(mutatingWebhooks) ? revisionsOf(mutatingWebhooks.right) : undefined;
  for (const { metadata } of namespaces.right) {
    const problem = labelProblem(metadata, installedRevisions);
    if (problem !== undefined)
      findings.push(
        warning(
          check,
          `${metadata.name}: ${problem}`,
          `Run: kubectl get namespace ${metadata.name} --show-labels, and keep one label of a revision that exists.`,
        ),
      );
  }
  return findings;
}

function revisionsOf(configurations: readonly WebhookConfigurationFacts[]): ReadonlySet<string> {
  return new Set(
    configurations.flatMap(({ metadata: { labels = {} } }) =>
      [labels['istio.io/tag'], labels[revisionLabel]].filter((name) => name !== undefined),
    ),
  );
}

function labelProblem(
  { labels = {} }: ObjectMeta,
  installedRevisions: ReadonlySet<string> | undefined,
): string | undefined {
  const { 'istio-injection': injection, [revisionLabel]: revision } = labels;
  if (injection !== undefined && revision !== undefined)
    return `label istio-injection=${injection} takes precedence over ${revisionLabel}=${revision}`;
  if (injection !== undefined && !['enabled', 'disabled'].includes(injection))
    return `label istio-injection=${injection} has no effect: must be enabled or disabled`;
  if (installedRevisions === undefined) return undefined;
  if (revision !== undefined && !installedRevisions.has(revision))
    return `label ${revisionLabel}=${revision} names a revision that does not exist: its pods have no sidecar`;
  if (injection === 'enabled' && !installedRevisions.has('default'))
    return 'label istio-injection=enabled needs the revision or tag default, which does not exist';
  return undefined;
}

function podFindings(namespace: string, pods: ReadResult<readonly PodFacts[]>): ClusterFinding[] {
  const check = 'pods';
  if (E.isLeft(pods)) return [unknownFinding(check, pods.left)];
  const runningPods = pods.right.filter(({ status }) => !['Succeeded', 'Failed'].includes(status?.phase ?? ''));
  const candidates = runningPods.filter(({ spec, metadata: { labels = {}, annotations = {} } }) => {
    return spec.hostNetwork !== true && labels[injectLabel] !== 'false' && annotations[injectLabel] !== 'false';
  });
  const uninjectedPods = candidates.filter((pod) => proxyOf(pod) === undefined).map(({ metadata }) => metadata.name);
  if (uninjectedPods.length === 0)
    return [okFinding(check, `${namespace}: all ${candidates.length} pods have a sidecar`)];
  const names = `${uninjectedPods.slice(0, 5).join(', ')}${uninjectedPods.length > 5 ? ', …' : ''}`;
  return [
    warning(
      check,
      `${namespace}: ${uninjectedPods.length} of ${candidates.length} pods have no sidecar: ${names}`,
      `They are older than the label. Run: kubectl -n ${namespace} rollout restart deployment`,
    ),
  ];
}

const proxyOf = ({ spec: { containers, initContainers = [] } }: PodFacts) =>
  [...containers, ...initContainers].find(({ name }) => name === proxyName);

/** Sidecars with another image than new pods get were created before an upgrade. */
function versionFindings(
  { injector, admittedPods, pods }: InstalledFacts,
  members: readonly string[],
): ClusterFinding[] {
  const check = 'versions';
  if (E.isLeft(injector)) return [unknownFinding(check, injector.left)];
  const configuredImage = imageOf(injector.right);
  const current = new Set<string>();
  const findings = members.flatMap((member) => {
    const pod = admittedPods.get(member) ?? E.left('');
    // Prefers the image of the dry run, because a ProxyConfig may select its type.
    const expectedImage = (E.isRight(pod) ? proxyOf(pod.right)?.image : undefined) ?? configuredImage;
    if (expectedImage === undefined) return [];
    current.add(expectedImage);
    const list = pods.get(member)!;
    const proxies = E.isRight(list)
      ? list.right.flatMap((pod) => (choosesImage(pod) ? [] : (proxyOf(pod)?.image ?? [])))
      : [];
    const outdatedImages = proxies.filter((image) => image !== expectedImage);
    if (outdatedImages.length === 0) return [];
    const otherImages = [...new Set(outdatedImages)].sort();
    const message = `${member}: ${outdatedImages.length} sidecars run ${otherImages.slice(0, 3).join(', ')}; new ones get ${expectedImage}`;
    return [warning(check, message, `Run: kubectl -n ${member} rollout restart deployment`)];
  });
  if (findings.length > 0 || current.size === 0) return findings;
  return [okFinding(check, `all sidecars run ${[...current].sort().join(' or ')}`)];
}

/** `undefined` if the settings cannot be read, which the injector reports. */
function imageOf(injector: ConfigMapFacts | undefined): string | undefined {
  const decodedValues = decodeInjectionValues(injector?.data?.values ?? '');
  if (injector === undefined || E.isLeft(decodedValues)) return undefined;
  const { image, variant } = decodedValues.right;
  return imageReference(decodedValues.right, image, variant);
}

const choosesImage = ({ metadata: { annotations = {} } }: PodFacts): boolean =>
  ['sidecar.istio.io/proxyImage', 'sidecar.istio.io/proxyImageType', 'proxy.istio.io/config'].some(
    (key) => key in annotations,
  );
