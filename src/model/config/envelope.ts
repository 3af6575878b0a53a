import { isObject, ownValue } from '../../runtime/json-object.ts';
import { type FieldError, fieldPath } from '../fields/decode.ts';
import { booleanOf } from '../fields/go-boolean.ts';
import { isNamespace, isObjectName } from '../fields/names.ts';
import { nearestName } from '../fields/nearest-name.ts';
import * as violation from '../fields/violation.ts';
import { gatewayServiceAnnotation } from '../kinds/gateway/gateway.ts';
import { gatewayApiGroup } from '../kinds/gateway-api/fields.ts';
import { type KindName, kinds } from '../kinds/index.ts';
import { dryRunAnnotation } from '../kinds/policies/dry-run.ts';
import type { ConfigKey } from './config.ts';

export interface Envelope {
  readonly _tag: 'good';
  readonly kind: KindName;
  readonly key: ConfigKey;
  readonly apiVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly creationTimestamp?: number;
  readonly generation?: number;
  readonly uid?: string;
  readonly isEnding?: true;
  readonly spec: unknown;
  readonly status?: unknown;
}

export interface InvalidEnvelope {
  readonly _tag: 'bad';
  readonly key?: ConfigKey;
  readonly body?: { readonly kind: KindName; readonly spec: unknown };
  readonly errors: readonly FieldError[];
}

export interface SkippedObject {
  readonly _tag: 'skipped';
  /** Absent for Kubernetes' own kinds, because manifests also contain them. */
  readonly problem?: {
    /** An error if the object seems to restrict access, because nothing else reports a missing restriction. */
    readonly severity: 'error' | 'warning';
    readonly violation: violation.FieldViolation;
  };
}

/** Kubernetes' own kinds without effect on a mesh, by group. A similar but unknown kind is reported as misspelled. */
const kindsOfKubernetes: Readonly<Record<string, readonly string[]>> = {
  '': [
    'LimitRange',
    'PersistentVolume',
    'PersistentVolumeClaim',
    'ReplicationController',
    'ResourceQuota',
    'ServiceAccount',
  ],
  apps: ['ControllerRevision', 'DaemonSet', 'Deployment', 'ReplicaSet', 'StatefulSet'],
  autoscaling: ['HorizontalPodAutoscaler'],
  batch: ['CronJob', 'Job'],
  policy: ['PodDisruptionBudget'],
  'admissionregistration.k8s.io': ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'],
  'apiextensions.k8s.io': ['CustomResourceDefinition'],
  'networking.k8s.io': ['NetworkPolicy'],
  'rbac.authorization.k8s.io': ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  'scheduling.k8s.io': ['PriorityClass'],
  'storage.k8s.io': ['StorageClass'],
};

const restrictionKinds = ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'] as const;

const istioGroups: readonly string[] = ['security.istio.io', 'networking.istio.io'];

const kindsThatMayRestrict = [...restrictionKinds, 'Sidecar', 'DestinationRule'] as const;

const gatewayApiMayRestrict = ['BackendTLSPolicy'] as const;

const metadataFields = [
  ...(['name', 'namespace', 'labels', 'annotations', 'creationTimestamp'] as const),
  ...['generateName', 'uid', 'resourceVersion', 'generation', 'selfLink', 'deletionTimestamp', 'finalizers'],
  ...['deletionGracePeriodSeconds', 'ownerReferences', 'managedFields', 'clusterName'],
];

/** Replaces misspelled metadata fields by the intended ones, unless those exist. */
export function correctedMetadata(metadata: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const misspeltEntries = misspeltMetadata(metadata).filter(
    ([, intendedField]) => !Object.hasOwn(metadata, intendedField),
  );
  if (misspeltEntries.length === 0) return metadata;
  return {
    ...metadata,
    ...Object.fromEntries(misspeltEntries.map(([field, intendedField]) => [intendedField, metadata[field]])),
  };
}

function misspeltMetadata(metadata: Readonly<Record<string, unknown>>): [field: string, meant: string][] {
  const misspeltFields: [string, string][] = [];
  for (const field in metadata) {
    const intendedField = metadataFields.includes(field) ? undefined : nearestName(field, metadataFields);
    if (intendedField !== undefined) misspeltFields.push([field, intendedField]);
  }
  return misspeltFields;
}

const unsupportedKinds: Readonly<Record<string, readonly string[]>> = {
  [gatewayApiGroup]: ['UDPRoute', 'ListenerSet', 'BackendLBPolicy'],
};

/** Groups of Istio 1.4 and earlier. */
const retiredGroups: ReadonlySet<string> = new Set(['authentication.istio.io', 'rbac.istio.io', 'config.istio.io']);

const topFields = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

const kindByGroupAndName = new Map(
  Object.values(kinds).map((entry) => [`${entry.group}/${entry.writtenAs ?? entry.kind}`, entry]),
);

function kindOf(group: string, kind: string) {
  return kindByGroupAndName.get(`${group}/${kind}`);
}

export function kindNameOf(apiVersion: unknown, kind: string): string {
  return intendedKind(apiVersion, kind) ?? kind;
}

/** Returns the kind of an object. Corrects a misspelled group or kind only if the intended kind restricts access. `undefined` for ignored kinds. */
export function intendedKind(apiVersion: unknown, kind: string): KindName | undefined {
  const writtenVersion = typeof apiVersion === 'string' ? apiVersion : undefined;
  const group = groupOf(writtenVersion ?? '');
  const kindName = kindOf(group, kind)?.kind;
  if (kindName !== undefined) return kindName;
  const nearestKind = isSimilarToIstioGroup(group) ? nearestName(kind, kindsThatMayRestrict) : undefined;
  return nearestKind ?? (isSimilarToGatewayApiKind(group, kind) ? nearestName(kind, gatewayApiMayRestrict) : undefined);
}

function groupOf(apiVersion: string): string {
  return apiVersion.slice(0, Math.max(apiVersion.lastIndexOf('/'), 0));
}

/** Accepts an empty group, too, because no other project has objects without a group. */
function isSimilarToIstioGroup(group: string): boolean {
  const normalizedGroup = group.trim().toLowerCase();
  if (retiredGroups.has(normalizedGroup)) return false;
  if (normalizedGroup === '' || /(^|\.)istio\.io$/.test(normalizedGroup)) return true;
  const domain = normalizedGroup.split('.').slice(-2).join('.');
  return nearestName(normalizedGroup, istioGroups) !== undefined || nearestName(domain, ['istio.io']) !== undefined;
}

function isSimilarToGatewayApiKind(group: string, kind: string): boolean {
  const normalizedGroup = group.trim().toLowerCase();
  if (ownValue(unsupportedKinds, normalizedGroup)?.includes(kind)) return false;
  return normalizedGroup === '' || nearestName(normalizedGroup, [gatewayApiGroup]) !== undefined;
}

export function readEnvelope(value: unknown): Envelope | InvalidEnvelope | SkippedObject {
  if (!isObject(value))
    return invalidEnvelope(undefined, [
      violation.fieldError('', violation.wrongType('an object with apiVersion, kind and metadata', value)),
    ]);
  const { apiVersion, kind } = value;
  const missingFields = ['apiVersion', 'kind'].filter((field) => typeof value[field] !== 'string');
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    return invalidEnvelope(
      typeof kind === 'string' ? intendedKey(value, kind) : undefined,
      missingFields.map((field) => violation.fieldError(field, violation.missingValue('and must be a string'))),
    );
  }
  const [group, version] = [groupOf(apiVersion), apiVersion.slice(apiVersion.lastIndexOf('/') + 1)];
  const kindEntry = kindOf(group, kind);
  if (kindEntry === undefined) {
    const suggestedKind = intendedKind(apiVersion, kind);
    if (suggestedKind === undefined) return skippedObject(group, kind, apiVersion);
    return invalidEnvelope(intendedKey(value, kind), [
      violation.fieldError('kind', intendedKindText(suggestedKind, kind, apiVersion)),
    ]);
  }
  const errors: FieldError[] = [];
  if (!kindEntry.versions.includes(version)) {
    errors.push(
      violation.fieldError(
        'apiVersion',
        violation.unknownValue(
          kindEntry.versions.map((kindVersion) => (group === '' ? kindVersion : `${group}/${kindVersion}`)),
          apiVersion,
        ),
      ),
    );
  }
  const spec = kindEntry.body === 'spec' ? specOf(value, errors) : withoutEnvelope(value);
  const body = { kind: kindEntry.kind, apiVersion, spec, status: kindEntry.body === 'spec' ? value.status : undefined };
  return withMetadata(body, value.metadata, errors, kindEntry.scope);
}

const fieldOutsideSpec: violation.FieldViolation = {
  code: 'FIELD_UNKNOWN',
  message: 'unknown field; fields of the object belong under spec',
};

function specOf(value: Readonly<Record<string, unknown>>, errors: FieldError[]): unknown {
  for (const field in value) {
    if (topFields.includes(field)) continue;
    const nearestField = nearestName(field, topFields);
    errors.push(
      violation.fieldError(field, nearestField === undefined ? fieldOutsideSpec : violation.unknownField(nearestField)),
    );
  }
  if (value.spec === undefined || value.spec === null)
    errors.push(violation.fieldError('spec', violation.missingValue()));
  return value.spec;
}

function withoutEnvelope({
  apiVersion: _v,
  kind: _k,
  metadata: _m,
  ...body
}: Readonly<Record<string, unknown>>): unknown {
  return body;
}

interface Body {
  readonly kind: KindName;
  readonly apiVersion: string;
  readonly spec: unknown;
  readonly status: unknown;
}

function withMetadata(
  body: Body,
  writtenMetadata: unknown,
  errors: FieldError[],
  scope: 'Namespaced' | 'Cluster',
): Envelope | InvalidEnvelope {
  if (!isObject(writtenMetadata))
    return invalidEnvelope(
      undefined,
      [...errors, violation.fieldError('metadata', violation.missingValue('with a name'))],
      body,
    );
  for (const [field, intendedField] of misspeltMetadata(writtenMetadata)) {
    errors.push(violation.fieldError(fieldPath('metadata', field), violation.unknownField(intendedField)));
  }
  const metadata = correctedMetadata(writtenMetadata);
  const { name, creationTimestamp, generation, uid, deletionTimestamp } = metadata;
  const namespace = scope === 'Cluster' ? '' : (metadata.namespace ?? 'default');
  if (typeof name !== 'string' || !isObjectName(name)) {
    errors.push(violation.fieldError('metadata.name', nameViolation(name, 'letters, digits, "-" and "."')));
  }
  if (scope === 'Namespaced' && (typeof namespace !== 'string' || !isNamespace(namespace))) {
    errors.push(violation.fieldError('metadata.namespace', nameViolation(namespace, 'letters, digits and "-"')));
  }
  const labels = texts(metadata.labels, 'metadata.labels', errors);
  const annotations = texts(metadata.annotations, 'metadata.annotations', errors);
  errors.push(...annotationErrors(annotations, body.kind));
  const createdAt = timeOf(creationTimestamp, errors);
  const hasName = typeof name === 'string' && typeof namespace === 'string';
  const key = hasName ? { kind: body.kind, namespace, name } : undefined;
  if (errors.length > 0 || key === undefined) return invalidEnvelope(key, errors, body);
  const { status, ...bodyFields } = body;
  return {
    _tag: 'good',
    ...bodyFields,
    key,
    labels,
    annotations,
    ...(createdAt === undefined ? {} : { creationTimestamp: createdAt }),
    ...(typeof generation === 'number' && { generation }),
    ...(typeof uid === 'string' && uid !== '' && { uid }),
    ...(typeof deletionTimestamp === 'string' && { isEnding: true }),
    ...(status === undefined || status === null ? {} : { status }),
  };
}

function invalidEnvelope(key: ConfigKey | undefined, errors: readonly FieldError[], body?: Body): InvalidEnvelope {
  const isPresent = body?.spec !== undefined && body.spec !== null;
  return { _tag: 'bad', ...(key && { key }), ...(isPresent && { body: { kind: body.kind, spec: body.spec } }), errors };
}

function nameViolation(name: unknown, allowedCharacters: string): violation.FieldViolation {
  if (name === undefined || name === null) return violation.missingValue();
  return violation.mustBe(`a name of lower-case ${allowedCharacters}`, name);
}

const noTexts: Readonly<Record<string, string>> = Object.freeze({});

function texts(value: unknown, path: string, errors: FieldError[]): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return noTexts;
  if (!isObject(value)) {
    errors.push(violation.fieldError(path, violation.wrongType('a map of strings', value)));
    return {};
  }
  for (const [key, element] of Object.entries(value)) {
    if (typeof element !== 'string') {
      errors.push(
        violation.fieldError(
          fieldPath(path, key),
          violation.wrongType('a string', element, { hint: 'put it in quotes' }),
        ),
      );
    }
  }
  return value as Readonly<Record<string, string>>;
}

function annotationErrors(annotations: Readonly<Record<string, string>>, kind: string): FieldError[] {
  if (annotations === noTexts) return [];
  return Object.entries(annotations).flatMap(([key, value]) => {
    const path = fieldPath('metadata.annotations', key);
    if (key === gatewayServiceAnnotation && kind === 'Gateway') return [];
    if (key.startsWith('internal.istio.io/'))
      return [
        violation.fieldError(path, violation.disallowedValue('is internal to the control plane and must not be set')),
      ];
    if (key !== dryRunAnnotation) return [];
    if (kind !== 'AuthorizationPolicy')
      return [violation.fieldError(path, violation.unsupportedFeature(`is not supported on ${kind}`))];
    return typeof value !== 'string' || booleanOf(value) !== undefined
      ? []
      : [
          violation.fieldError(
            path,
            violation.mustBe('true or false (or 1, t, T, TRUE, True, 0, f, F, FALSE, False)', value),
          ),
        ];
  });
}

function timeOf(value: unknown, errors: FieldError[]): number | undefined {
  if (value === undefined || value === null) return undefined;
  const timestampMs = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(timestampMs)) return timestampMs;
  errors.push(
    violation.fieldError('metadata.creationTimestamp', violation.mustBe('a time such as 2024-05-01T12:00:00Z', value)),
  );
  return undefined;
}

function intendedKey(value: Readonly<Record<string, unknown>>, writtenName: string): ConfigKey | undefined {
  const kind = intendedKind(value.apiVersion, writtenName);
  if (kind === undefined || !isObject(value.metadata)) return undefined;
  const { name, namespace = 'default' } = correctedMetadata(value.metadata);
  return typeof name === 'string' && typeof namespace === 'string' ? { kind, namespace, name } : undefined;
}

function intendedKindText(nearestKind: KindName, kind: string, apiVersion: string): violation.FieldViolation {
  const { group, versions } = kinds[nearestKind];
  const expectedVersion = `${group}/${versions[0]}`;
  return kind === nearestKind
    ? violation.unknownKind(
        `${kind} belongs to ${expectedVersion}, got ${apiVersion}: the object is rejected`,
        `${apiVersion} ${kind}`,
        expectedVersion,
      )
    : violation.unknownKind(
        `unknown kind ${kind} (${apiVersion}): the object is rejected; did you mean ${nearestKind} of ${expectedVersion}?`,
        `${apiVersion} ${kind}`,
        `${expectedVersion} ${nearestKind}`,
      );
}

function skippedObject(group: string, kind: string, apiVersion: string): SkippedObject {
  if (ownValue(kindsOfKubernetes, group)?.includes(kind)) return { _tag: 'skipped' };
  const mayRestrictTraffic = group === 'security.istio.io';
  const reason = reasonToSkip(group, kind, apiVersion);
  const skipReason = mayRestrictTraffic
    ? { ...reason, message: `${reason.message}, and it restricts nothing` }
    : reason;
  return { _tag: 'skipped', problem: { severity: mayRestrictTraffic ? 'error' : 'warning', violation: skipReason } };
}

function reasonToSkip(group: string, kind: string, apiVersion: string): violation.FieldViolation {
  const actual = `${apiVersion} ${kind}`;
  const unsupportedViolation = (unsupportedReason: string): violation.FieldViolation => ({
    ...{ code: 'KIND_UNSUPPORTED', got: actual },
    message: `${kind} (${apiVersion}) ${unsupportedReason}: the object is skipped`,
  });
  if (ownValue(unsupportedKinds, group)?.includes(kind)) return unsupportedViolation('is not supported in files');
  if (retiredGroups.has(group)) return unsupportedViolation('belongs to an old version of Istio');
  const writableKinds = Object.values(kinds).filter((entry) => entry.writtenAs === undefined);
  const otherGroupKind = writableKinds.find((entry) => entry.kind === kind);
  if (otherGroupKind !== undefined) {
    const expectedVersion = `${otherGroupKind.group}/${otherGroupKind.versions[0]}`;
    const message = `${kind} belongs to ${expectedVersion}, got ${apiVersion}: the object is skipped`;
    return violation.unknownKind(message, actual, expectedVersion);
  }
  const nearestKind = nearestName(
    kind,
    writableKinds.map((entry) => entry.kind),
  );
  const hint = nearestKind === undefined ? '' : `; did you mean ${nearestKind}?`;
  return violation.unknownKind(
    `unknown kind ${kind} (${apiVersion}): the object is skipped${hint}`,
    actual,
    nearestKind,
  );
}
