import {
  type Decoder,
  type FieldError,
  fieldPath,
  list,
  mapDecoder,
  name,
  nonEmptyList,
  oneOf,
  optional,
  refine,
  required,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { atLeastOneOf, withSchemaValidation } from '../../fields/description.ts';
import { limitErrors } from '../../fields/limits.ts';
import { portPattern, subnetPattern } from '../../fields/patterns.ts';
import * as violation from '../../fields/violation.ts';
import { maxPolicyValues } from '../object-limits.ts';
import * as rules from './authorization-policy.rules.ts';
import type {
  AuthorizationCondition,
  AuthorizationOperation,
  AuthorizationPolicy,
  AuthorizationRule,
  AuthorizationSource,
} from './authorization-policy.ts';
import { scopeAliases, scopeErrors, scopeFields, scopeRules } from './policy-target.decode.ts';

function texts(
  violationOf: (text: string) => violation.FieldViolation | undefined,
  pattern = rules.withoutSpacePattern,
) {
  const item = refine(name, (value, path) =>
    violation.errorsAt(path, rules.spaceViolation(value) ?? violationOf(value)),
  );
  return optional(nonEmptyList(withSchemaValidation(item, { pattern }), maxPolicyValues));
}

const anyText = texts(rules.wildcardViolation, rules.wildcardPattern);
const subnets = texts(rules.subnetViolation, subnetPattern);
const ports = texts(rules.portViolation, portPattern);

const source: Decoder<AuthorizationSource> = withSchemaValidation(
  refine(
    struct<AuthorizationSource>(
      restrictions({
        principals: anyText,
        notPrincipals: anyText,
        requestPrincipals: anyText,
        notRequestPrincipals: anyText,
        namespaces: anyText,
        notNamespaces: anyText,
        serviceAccounts: texts(rules.serviceAccountViolation),
        notServiceAccounts: texts(rules.serviceAccountViolation),
        trustDomains: anyText,
        notTrustDomains: anyText,
        ipBlocks: subnets,
        notIpBlocks: subnets,
        remoteIpBlocks: subnets,
        notRemoteIpBlocks: subnets,
      }),
    ),
    (value, path) => [
      ...emptyErrors(value, path),
      ...violation.errorsAt(
        fieldPath(path, 'serviceAccounts'),
        value.serviceAccounts && (value.principals || value.namespaces)
          ? violation.excludedField('together with principals or namespaces')
          : undefined,
      ),
    ],
  ),
  {
    minProperties: 1,
    not: { required: ['serviceAccounts'], anyOf: [{ required: ['principals'] }, { required: ['namespaces'] }] },
  },
);

const operation: Decoder<AuthorizationOperation> = withSchemaValidation(
  refine(
    struct<AuthorizationOperation>(
      restrictions({
        hosts: anyText,
        notHosts: anyText,
        ports: ports,
        notPorts: ports,
        methods: anyText,
        notMethods: anyText,
        paths: texts(rules.pathViolation),
        notPaths: texts(rules.pathViolation),
      }),
    ),
    emptyErrors,
  ),
  { minProperties: 1 },
);

const condition: Decoder<AuthorizationCondition> = withSchemaValidation(
  refine(
    struct<AuthorizationCondition>(
      restrictions({
        key: required(withSchemaValidation(name, { pattern: rules.conditionKeyPattern })),
        values: optional(nonEmptyList(name)),
        notValues: optional(nonEmptyList(name)),
      }),
    ),
    ({ key, values = [], notValues = [] }, path) => {
      const violationOf = rules.conditionValues(key);
      if (violationOf === undefined)
        return [
          violation.fieldError(
            fieldPath(path, 'key'),
            violation.mustBe('a condition key of Istio, such as request.headers[x-id]', key),
          ),
        ];
      return [
        ...violation.errorsAt(
          path,
          values.length + notValues.length === 0 ? violation.missingAny(['values', 'notValues']) : undefined,
        ),
        ...values.flatMap((value, index) =>
          violation.errorsAt(`${fieldPath(path, 'values')}[${index}]`, violationOf(value)),
        ),
        ...notValues.flatMap((value, index) =>
          violation.errorsAt(`${fieldPath(path, 'notValues')}[${index}]`, violationOf(value)),
        ),
      ];
    },
  ),
  atLeastOneOf(['values', 'notValues']),
);

const from = mapDecoder(
  struct<{ source: AuthorizationSource }>(restrictions({ source: required(source) })),
  (item) => item.source,
);

const to = mapDecoder(
  struct<{ operation: AuthorizationOperation }>(restrictions({ operation: required(operation) })),
  (item) => item.operation,
);

const rule: Decoder<AuthorizationRule> = struct<AuthorizationRule>(
  restrictions({
    from: optional(nonEmptyList(from)),
    to: optional(nonEmptyList(to)),
    when: optional(nonEmptyList(condition)),
  }),
);

function valueCountOf({ rules: policyRules = [] }: AuthorizationPolicy): number {
  let sum = 0;
  for (const { from: sources = [], to: operations = [], when = [] } of policyRules)
    for (const item of [...sources, ...operations, ...when])
      for (const values of Object.values(item)) if (Array.isArray(values)) sum += values.length;
  return sum;
}

export const authorizationPolicy: Decoder<AuthorizationPolicy> = withSchemaValidation(
  refine(
    struct<AuthorizationPolicy>(
      restrictions({
        ...scopeFields,
        action: withDefault(oneOf(['ALLOW', 'DENY', 'AUDIT', 'CUSTOM']), 'ALLOW'),
        rules: withDefault(list(rule), []),
        provider: optional(mapDecoder(struct<{ name: string }>({ name: required(name) }), (provider) => provider.name)),
      }),
      scopeAliases(),
    ),
    (policy, path) =>
      limitErrors(fieldPath(path, 'rules'), valueCountOf(policy), maxPolicyValues, 'values of all rules'),
    (policy, path) => [...scopeErrors(policy, path), ...actionErrors(policy, path), ...rules.customErrors(policy)],
  ),
  {
    rules: [
      ...scopeRules,
      {
        rule: "!has(self.action) || !(self.action in ['DENY', 'CUSTOM']) || (has(self.rules) && size(self.rules) > 0)",
        message: 'is required with action DENY or CUSTOM',
        fieldPath: '.rules',
      },
      {
        rule: "(has(self.action) && self.action == 'CUSTOM') == has(self.provider)",
        message: 'is required with action CUSTOM, and must not be set with others',
        fieldPath: '.provider',
      },
    ],
  },
);

function emptyErrors(value: object, path: string): FieldError[] {
  return violation.errorsAt(path, Object.keys(value).length === 0 ? violation.emptyValue() : undefined);
}

function actionErrors(
  { action, rules: authorizationRules, provider }: AuthorizationPolicy,
  path: string,
): FieldError[] {
  const needsRules = action === 'DENY' || action === 'CUSTOM';
  return [
    ...violation.errorsAt(
      fieldPath(path, 'rules'),
      needsRules && authorizationRules.length === 0 ? violation.missingValue(`with action ${action}`) : undefined,
    ),
    ...violation.errorsAt(
      fieldPath(path, 'provider'),
      action === 'CUSTOM' && provider === undefined ? violation.missingValue('with action CUSTOM') : undefined,
    ),
    ...violation.errorsAt(
      fieldPath(path, 'provider'),
      action !== 'CUSTOM' && provider !== undefined ? violation.excludedField(`with action ${action}`) : undefined,
    ),
  ];
}
