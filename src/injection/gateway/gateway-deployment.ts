/** Names, labels and annotations of the objects are those of Istio. */

import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, type FieldError, fail } from '../../model/fields/decode.ts';
import { isObjectName } from '../../model/fields/names.ts';
import * as violation from '../../model/fields/violation.ts';
import { revisionLabel } from '../../model/kinds/metadata-keys.ts';
import { isObject } from '../../runtime/json-object.ts';
import { injectPod } from '../inject.ts';
import type { SidecarInjector } from '../injector.ts';
import { MergeError, mergeGatewayObject } from '../merge/strategic-merge.ts';
import { type Json, type Pod, proxyContainerName, type Texts } from '../pod/pod.ts';
import { healthPort } from '../template/template-input.ts';
import { parseYamlObject } from '../yaml-text.ts';
import { defaultNameOf, isServiceName, maxNameCharacters } from './object-names.ts';

export interface DeployedGateway {
  readonly apiVersion: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly annotations: Texts;
  readonly className: string;
  readonly listeners: readonly { readonly port: number; readonly protocol: string }[];
  readonly infrastructure: { readonly labels: Texts; readonly annotations: Texts };
}

export interface GatewayObjects {
  readonly deployment: Json;
  readonly service: Json;
  readonly serviceAccount?: Json;
}

const gatewayApi = 'gateway.networking.k8s.io';
export const gatewayNameLabel = `${gatewayApi}/gateway-name`;
export const managedLabel = 'gateway.istio.io/managed';
/** Label values cannot contain a slash. */
export const managedBy = 'istio.io-gateway-controller';
const nameAnnotation = 'gateway.istio.io/name-override';
const accountAnnotation = 'gateway.istio.io/service-account';
const typeAnnotation = 'networking.istio.io/service-type';
const serviceTypes = ['ClusterIP', 'NodePort', 'LoadBalancer'];
/** The ConfigMap of `parametersRef` uses these names as keys. */
const kinds = ['deployment', 'service', 'serviceAccount'] as const;
type Kind = (typeof kinds)[number];

const metricsPort = 15_020;

/**
 * @param parameters data of the ConfigMap in `spec.infrastructure.parametersRef`: a strategic merge patch in YAML for each kind. It cannot change the
 * identity of an object, and so cannot write outside the Gateway's namespace
 */
export function gatewayObjects(
  gateway: DeployedGateway,
  injector: SidecarInjector,
  parameters: Texts = {},
): Decoded<GatewayObjects> {
  const patches = patchesOf(parameters);
  const [error, ...errors] = [...nameErrors(gateway), ...(E.isLeft(patches) ? patches.left : [])];
  if (error !== undefined) return E.left([error, ...errors]);
  const names = namesOf(gateway);
  const pod = injectedPod(gateway, names, injector);
  if (E.isLeft(pod)) return pod;
  const builtObjects: Record<Kind, Json | undefined> = {
    deployment: deploymentOf(gateway, names, pod.right, injector),
    service: serviceOf(gateway, names, injector),
    serviceAccount: names.isOwnAccount ? objectOf(gateway, names.account, injector, 'v1', 'ServiceAccount') : undefined,
  };
  return mergeObjects(builtObjects, E.isRight(patches) ? patches.right : {});
}

interface Names {
  readonly name: string;
  readonly account: string;
  readonly isOwnAccount: boolean;
}

function namesOf({ name, className, annotations }: DeployedGateway): Names {
  const requestedName = annotations[nameAnnotation] || defaultNameOf(name, className);
  const account = annotations[accountAnnotation];
  return { name: requestedName, account: account || requestedName, isOwnAccount: !account };
}

function nameErrors({ name, annotations }: DeployedGateway): FieldError[] {
  const annotationPath = (annotation: string): string => `metadata.annotations["${annotation}"]`;
  const { [nameAnnotation]: override, [accountAnnotation]: account, [typeAnnotation]: type } = annotations;
  return [
    ...violation.errorsAt(
      'metadata.name',
      name.length > maxNameCharacters ? violation.tooLarge(maxNameCharacters, name.length) : undefined,
    ),
    ...violation.errorsAt(
      annotationPath(nameAnnotation),
      override && !isServiceName(override)
        ? violation.mustBe(`the name of a Service, at most ${maxNameCharacters} characters`, override)
        : undefined,
    ),
    ...violation.errorsAt(
      annotationPath(accountAnnotation),
      account && !isObjectName(account) ? violation.mustBe('the name of a ServiceAccount', account) : undefined,
    ),
    ...violation.errorsAt(
      annotationPath(typeAnnotation),
      type && !serviceTypes.includes(type) ? violation.unknownValue(serviceTypes, type) : undefined,
    ),
  ];
}

function ownLabels({ name, className }: DeployedGateway, { settings }: SidecarInjector): Texts {
  return {
    [gatewayNameLabel]: name,
    [`${gatewayApi}/gateway-class-name`]: className,
    [managedLabel]: managedBy,
    [revisionLabel]: settings.revision || 'default',
  };
}

function objectOf(
  gateway: DeployedGateway,
  name: string,
  injector: SidecarInjector,
  apiVersion: string,
  kind: string,
): Json & { readonly metadata: Json } {
  const { infrastructure, namespace, uid } = gateway;
  const owner = { apiVersion: gateway.apiVersion, kind: 'Gateway', name: gateway.name, uid };
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      labels: { ...infrastructure.labels, ...ownLabels(gateway, injector) },
      ...(Object.keys(infrastructure.annotations).length > 0 && { annotations: infrastructure.annotations }),
      // `blockOwnerDeletion: true` would require permission to change Gateways.
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
    },
  };
}

function deploymentOf(gateway: DeployedGateway, { name }: Names, pod: Pod, injector: SidecarInjector): Json {
  return {
    ...objectOf(gateway, name, injector, 'apps/v1', 'Deployment'),
    // Sets no replicas, because an autoscaler may own the field.
    spec: { selector: { matchLabels: { [gatewayNameLabel]: gateway.name } }, template: pod },
  };
}

/** Injects the pod template like the webhook, so that the webhook does not change it again. */
function injectedPod(gateway: DeployedGateway, { name, account }: Names, injector: SidecarInjector): Decoded<Pod> {
  const { infrastructure, namespace } = gateway;
  const { settings, mesh, proxyConfigFor, renderGoTemplate } = injector;
  const labels: Texts = {
    ...infrastructure.labels,
    ...ownLabels(gateway, injector),
    'service.istio.io/canonical-name': name,
    'service.istio.io/canonical-revision': 'latest',
    'sidecar.istio.io/inject': 'false',
  };
  const hash = 'pod-template-hash';
  const pod: Pod = {
    metadata: {
      // The injector recognizes the workload by this form of name, which the Deployment's ReplicaSet would generate.
      generateName: `${name}-${hash}-`,
      labels: { ...labels, [hash]: hash },
      annotations: {
        'prometheus.io/path': '/stats/prometheus',
        'prometheus.io/port': `${metricsPort}`,
        'prometheus.io/scrape': 'true',
        ...infrastructure.annotations,
        'inject.istio.io/templates': 'gateway',
      },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${name}-${hash}`, controller: true }],
    },
    spec: {
      serviceAccountName: account,
      containers: [
        {
          name: proxyContainerName,
          image: 'auto',
          ports: [
            { name: 'metrics', containerPort: metricsPort, protocol: 'TCP' },
            { name: 'status-port', containerPort: healthPort, protocol: 'TCP' },
          ],
        },
      ],
    },
  };
  const injectionResult = injectPod({
    ...{ pod, namespace, settings, mesh, proxyConfigFor },
    ...(renderGoTemplate && { renderGoTemplate }),
  });
  if (E.isLeft(injectionResult)) return injectionResult;
  const { generateName: _, ownerReferences: __, labels: allLabels = {}, ...metadata } = injectionResult.right.metadata;
  const { [hash]: ___, ...otherAnnotations } = allLabels;
  return E.right({ ...injectionResult.right, metadata: { ...metadata, labels: otherAnnotations } });
}

function serviceOf(gateway: DeployedGateway, { name }: Names, injector: SidecarInjector): Json {
  const protocolByPort = new Map(gateway.listeners.toReversed().map((listener) => [listener.port, listener.protocol]));
  const ports = [...protocolByPort]
    .toSorted(([a], [b]) => a - b)
    .map(([port, protocol]) => ({
      name: `${protocol
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .slice(0, 40)}-${port}`,
      port,
      targetPort: port,
      protocol: 'TCP',
      ...(['HTTP', 'HTTPS', 'TLS', 'TCP'].includes(protocol) && { appProtocol: protocol.toLowerCase() }),
    }));
  const status = { name: 'status-port', port: healthPort, targetPort: healthPort, protocol: 'TCP', appProtocol: 'tcp' };
  return {
    ...objectOf(gateway, name, injector, 'v1', 'Service'),
    spec: {
      type: gateway.annotations[typeAnnotation] || 'LoadBalancer',
      selector: { [gatewayNameLabel]: gateway.name },
      ports: [...(protocolByPort.has(healthPort) ? [] : [status]), ...ports],
    },
  };
}

type Patches = Partial<Record<Kind, Json>>;

function patchesOf(parameters: Texts): Decoded<Patches> {
  const patches: Patches = {};
  const errors: FieldError[] = [];
  for (const [key, text] of Object.entries(parameters)) {
    const path = `parametersRef.${key}`;
    const kind = kinds.find((candidate) => candidate === key);
    if (kind === undefined) {
      errors.push(violation.fieldError(path, violation.unknownValue(kinds, key)));
      continue;
    }
    const patch = parseYamlObject(text, path);
    if (E.isRight(patch)) patches[kind] = patch.right;
    else errors.push(...patch.left);
  }
  const [firstError, ...moreErrors] = errors;
  return firstError === undefined ? E.right(patches) : E.left([firstError, ...moreErrors]);
}

function mergeObjects(builtObjects: Record<Kind, Json | undefined>, patches: Patches): Decoded<GatewayObjects> {
  const mergedObjects: Partial<Record<Kind, Json>> = {};
  for (const kind of kinds) {
    const object = builtObjects[kind];
    if (object === undefined) continue;
    try {
      const patch = patches[kind];
      mergedObjects[kind] =
        patch === undefined ? object : withIdentity(object, mergeGatewayObject(kind, object, patch));
    } catch (error) {
      if (error instanceof MergeError) return fail(`parametersRef.${kind}`, violation.malformedValue(error.message));
      throw error;
    }
  }
  return E.right(mergedObjects as unknown as GatewayObjects);
}

/** The control plane applies a user's patch with its own permissions, so the patch must not change the identity of an object. */
function withIdentity(builtObject: Json, patchedObject: Json): Json {
  const { apiVersion, kind } = builtObject;
  const builtMetadata = builtObject.metadata as { readonly [field: string]: unknown; readonly labels: Texts };
  const metadata = isObject(patchedObject.metadata) ? patchedObject.metadata : {};
  const labels = { ...(isObject(metadata.labels) ? metadata.labels : {}), ...builtMetadata.labels };
  const { name, namespace, ownerReferences } = builtMetadata;
  const annotations = isObject(metadata.annotations) ? { annotations: metadata.annotations } : {};
  const object = {
    ...patchedObject,
    apiVersion,
    kind,
    metadata: { name, namespace, ownerReferences, ...annotations, labels },
  };
  return kind === 'Deployment' ? withOwnPods(object, builtMetadata.labels) : object;
}

/** A patched selector could select pods of other workloads. */
function withOwnPods(deployment: Json, { [gatewayNameLabel]: name }: Texts): Json {
  const field = (value: unknown, key: string): Json => {
    const fieldValue = isObject(value) ? value[key] : undefined;
    return isObject(fieldValue) ? fieldValue : {};
  };
  const spec = field(deployment, 'spec');
  const template = field(spec, 'template');
  const metadata = field(template, 'metadata');
  const selectorLabels = { [gatewayNameLabel]: name };
  return {
    ...deployment,
    spec: {
      ...spec,
      selector: { matchLabels: selectorLabels },
      template: { ...template, metadata: { ...metadata, labels: { ...field(metadata, 'labels'), ...selectorLabels } } },
    },
  };
}
