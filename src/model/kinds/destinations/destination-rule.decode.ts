import { isObject } from '../../../runtime/json-object.ts';
import {
  type Decoded,
  type Decoder,
  decodedOrErrors,
  decodeWith,
  type FieldError,
  fieldPath,
  list,
  name,
  optional,
  refine,
  required,
  restrictingField,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withDescription, withSchemaValidation } from '../../fields/description.ts';
import { isWildcard } from '../../fields/hostname.ts';
import { limitErrors } from '../../fields/limits.ts';
import { anyHostViolation, isDnsLabel, partialWildcardWarning } from '../../fields/names.ts';
import { hostPattern, labelPattern } from '../../fields/patterns.ts';
import { missingPart } from '../../fields/readable-part.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors, exportTo, hostText, labels, selectorLabels } from '../field-rules.ts';
import { maxPortSettings, maxSubsets, maxWildcardSubsets } from '../object-limits.ts';
import type { WorkloadSelector } from '../workloads/workload-selector.ts';
import type { DestinationRule, Subset } from './destination-rule.ts';
import { trafficPolicy } from './traffic-policy.decode.ts';
import type { TrafficPolicy } from './traffic-policy.ts';

const subset: Decoder<Subset> = struct<Subset>({
  name: required(
    withSchemaValidation(
      refine(name, (value, path) =>
        violation.errorsAt(path, isDnsLabel(value) ? undefined : violation.mustBe('a DNS label', value)),
      ),
      { pattern: labelPattern, maxLength: 63 },
    ),
  ),
  labels: optional(labels),
  trafficPolicy: optional(trafficPolicy),
});

/** Only the selector of a DestinationRule uses `matchLabels`. */
const selector = struct<WorkloadSelector>({ labels: withDefault(selectorLabels, {}, 'matchLabels') });

const uniqueSubsets = {
  rules: [{ rule: 'self.all(a, self.exists_one(b, b.name == a.name))', message: 'must not repeat a name' }],
};

/** Checks the size before decoding, because decoding many settings takes long. */
function withoutTooManySettings<A>(decoder: Decoder<A>): Decoder<A> {
  return withDescription(
    (value: unknown, path: string) => {
      const errors = isObject(value) ? settingsErrors([value, ...listOf(value.subsets)].map(policyOf), path) : [];
      return errors.length > 0 ? decodedOrErrors(errors, missingPart as A) : decoder(value, path);
    },
    { type: 'narrowed', decoder, validation: {} },
  );
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const policyOf = (value: unknown): unknown => (isObject(value) ? value.trafficPolicy : undefined);

function settingsErrors(policies: readonly unknown[], path: string): FieldError[] {
  const settings = policies.reduce<number>(
    (sum, policy) => sum + (isObject(policy) ? listOf(policy.portLevelSettings).length : 0),
    0,
  );
  return limitErrors(fieldPath(path, 'subsets'), settings, maxPortSettings, 'portLevelSettings in all policies');
}

export const destinationRule: Decoder<DestinationRule> = refine(
  withoutTooManySettings(
    struct<DestinationRule>({
      host: required(withSchemaValidation(hostText(anyHostViolation), { pattern: hostPattern })),
      trafficPolicy: optional(trafficPolicy),
      subsets: optional(withSchemaValidation(list(subset, maxSubsets), uniqueSubsets)),
      exportTo: optional(exportTo),
      workloadSelector: restrictingField(optional(selector)),
    }),
  ),
  sizeErrors,
  (rule, path) =>
    duplicateErrors(
      rule.subsets ?? [],
      (item) => item.name,
      (index) => `${fieldPath(path, 'subsets')}[${index}].name`,
      'subset',
    ),
);

function sizeErrors({ host, subsets = [] }: DestinationRule, path: string): FieldError[] {
  const count = isWildcard(host) ? subsets.length : 0;
  return limitErrors(fieldPath(path, 'subsets'), count, maxWildcardSubsets, 'subsets for a wildcard host');
}

export function decodeDestinationRule(value: unknown, namespace: string): Decoded<DestinationRule> {
  return decodeWith(
    refine(destinationRule, (rule) => selectorReachErrors(rule, namespace)),
    value,
  );
}

/** A rule with a workload selector applies only in its own namespace. */
function selectorReachErrors(rule: DestinationRule, namespace: string): FieldError[] {
  if (rule.workloadSelector === undefined || rule.exportTo === undefined) return [];
  const isPrivate = rule.exportTo.every((target) => target === '.' || target === namespace);
  return violation.errorsAt(
    'exportTo',
    isPrivate
      ? undefined
      : violation.conflict('must be ["."] or the namespace of the object when workloadSelector is set'),
  );
}

export function destinationRuleWarnings(rule: DestinationRule): FieldError[] {
  return [
    ...violation.errorsAt('host', partialWildcardWarning(rule.host)),
    ...localityWarnings(rule.trafficPolicy, 'trafficPolicy'),
    ...(rule.subsets ?? []).flatMap((item, index) =>
      localityWarnings(item.trafficPolicy, `subsets[${index}].trafficPolicy`, rule.trafficPolicy),
    ),
  ];
}

function localityWarnings(policy: TrafficPolicy | undefined, path: string, parent?: TrafficPolicy): FieldError[] {
  const locality = policy?.loadBalancer?.localityLbSetting;
  const failsOver = (locality?.failover?.length ?? 0) + (locality?.failoverPriority?.length ?? 0) > 0;
  if (!failsOver || (policy?.outlierDetection ?? parent?.outlierDetection) !== undefined) return [];
  return [
    violation.fieldError(
      `${path}.loadBalancer.localityLbSetting`,
      violation.ineffectiveField('failover needs outlierDetection'),
    ),
  ];
}

/** Warns if no gateway routes to the host, because without a workloadSelector only gateways receive the rule's Secret. */
export function credentialWarnings(rule: DestinationRule): FieldError[] {
  if (rule.workloadSelector !== undefined) return [];
  const policies = [
    { path: 'trafficPolicy', policy: rule.trafficPolicy },
    ...(rule.subsets ?? []).map((item, index) => ({
      path: `subsets[${index}].trafficPolicy`,
      policy: item.trafficPolicy,
    })),
  ];
  return policies
    .flatMap(({ path, policy }) => [
      { path, tls: policy?.tls },
      ...(policy?.portLevelSettings ?? []).map(({ tls }, index) => ({
        path: `${path}.portLevelSettings[${index}]`,
        tls,
      })),
    ])
    .filter(({ tls }) => tls?.credentialName !== undefined)
    .map(({ path }) =>
      violation.fieldError(
        `${path}.tls.credentialName`,
        violation.doubtfulValue('applies to gateways only; sidecars need a rule with a workloadSelector'),
      ),
    );
}
