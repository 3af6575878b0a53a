import {
  type Decoder,
  type FieldError,
  fieldPath,
  list,
  mapped,
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
import { inSchema, someOf } from '../../fields/description.ts';
import { limitErrors } from '../../fields/limits.ts';
import { portPattern, subnetPattern } from '../../fields/patterns.ts';
import { mistakeAt } from '../field-rules.ts';
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

/** A list of texts, none of them empty. */
function texts(mistakeOf: (text: string) => string | undefined, pattern = rules.withoutSpacePattern) {
  const item = refine(name, (value, path) => mistakeAt(path, rules.spaceMistake(value) ?? mistakeOf(value)));
  return optional(nonEmptyList(inSchema(item, { pattern }), maxPolicyValues));
}

const anyText = texts(rules.wildcardMistake, rules.wildcardPattern);
const subnets = texts(rules.subnetMistake, subnetPattern);
const ports = texts(rules.portMistake, portPattern);

const source: Decoder<AuthorizationSource> = inSchema(
  refine(
    struct<AuthorizationSource>(
      restrictions({
        principals: anyText,
        notPrincipals: anyText,
        requestPrincipals: anyText,
        notRequestPrincipals: anyText,
        namespaces: anyText,
        notNamespaces: anyText,
        serviceAccounts: texts(rules.serviceAccountMistake),
        notServiceAccounts: texts(rules.serviceAccountMistake),
        trustDomains: anyText,
        notTrustDomains: anyText,
        ipBlocks: subnets,
        notIpBlocks: subnets,
        remoteIpBlocks: subnets,
        notRemoteIpBlocks: subnets,
      }),
    ),
    (value, path) => [
      ...notEmpty(value, path),
      ...mistakeAt(
        fieldPath(path, 'serviceAccounts'),
        value.serviceAccounts && (value.principals || value.namespaces)
          ? 'must not be given beside principals or namespaces'
          : undefined,
      ),
    ],
  ),
  {
    minProperties: 1,
    not: { required: ['serviceAccounts'], anyOf: [{ required: ['principals'] }, { required: ['namespaces'] }] },
  },
);

const operation: Decoder<AuthorizationOperation> = inSchema(
  refine(
    struct<AuthorizationOperation>(
      restrictions({
        hosts: anyText,
        notHosts: anyText,
        ports: ports,
        notPorts: ports,
        methods: anyText,
        notMethods: anyText,
        paths: texts(rules.pathMistake),
        notPaths: texts(rules.pathMistake),
      }),
    ),
    notEmpty,
  ),
  { minProperties: 1 },
);

const condition: Decoder<AuthorizationCondition> = inSchema(
  refine(
    struct<AuthorizationCondition>(
      restrictions({
        key: required(inSchema(name, { pattern: rules.conditionKeyPattern })),
        values: optional(nonEmptyList(name)),
        notValues: optional(nonEmptyList(name)),
      }),
    ),
    ({ key, values = [], notValues = [] }, path) => {
      const mistakeOf = rules.conditionValues(key);
      if (mistakeOf === undefined) return [{ path: fieldPath(path, 'key'), message: `is not a known key: ${key}` }];
      return [
        ...mistakeAt(path, values.length + notValues.length === 0 ? 'must have values or notValues' : undefined),
        ...values.flatMap((value, index) => mistakeAt(`${fieldPath(path, 'values')}[${index}]`, mistakeOf(value))),
        ...notValues.flatMap((value, index) =>
          mistakeAt(`${fieldPath(path, 'notValues')}[${index}]`, mistakeOf(value)),
        ),
      ];
    },
  ),
  someOf(['values', 'notValues']),
);

const from = mapped(
  struct<{ source: AuthorizationSource }>(restrictions({ source: required(source) })),
  (item) => item.source,
);

const to = mapped(
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

/** How many principals, addresses, hosts, paths and values of conditions the rules have. */
function valuesOf({ rules: all = [] }: AuthorizationPolicy): number {
  let sum = 0;
  for (const { from: sources = [], to: operations = [], when = [] } of all)
    for (const item of [...sources, ...operations, ...when])
      for (const values of Object.values(item)) if (Array.isArray(values)) sum += values.length;
  return sum;
}

/** An AuthorizationPolicy's `spec`. */
export const authorizationPolicy: Decoder<AuthorizationPolicy> = inSchema(
  refine(
    struct<AuthorizationPolicy>(
      restrictions({
        ...scopeFields,
        action: withDefault(oneOf(['ALLOW', 'DENY', 'AUDIT', 'CUSTOM']), 'ALLOW'),
        rules: withDefault(list(rule), []),
        provider: optional(mapped(struct<{ name: string }>({ name: required(name) }), (provider) => provider.name)),
      }),
      scopeAliases(),
    ),
    (policy, path) => limitErrors(fieldPath(path, 'rules'), valuesOf(policy), maxPolicyValues, 'values of all rules'),
    (policy, path) => [...scopeErrors(policy, path), ...actionErrors(policy, path), ...rules.customErrors(policy)],
  ),
  {
    rules: [
      ...scopeRules,
      {
        rule: "!has(self.action) || !(self.action in ['DENY', 'CUSTOM']) || (has(self.rules) && size(self.rules) > 0)",
        message: 'is required with action DENY or CUSTOM: without rules it would have no effect',
        fieldPath: '.rules',
      },
      {
        rule: "(has(self.action) && self.action == 'CUSTOM') == has(self.provider)",
        message: 'is required with action CUSTOM, and for no other',
        fieldPath: '.provider',
      },
    ],
  },
);

function notEmpty(value: object, path: string): FieldError[] {
  return mistakeAt(path, Object.keys(value).length === 0 ? 'must not be empty' : undefined);
}

function actionErrors({ action, rules: given, provider }: AuthorizationPolicy, path: string): FieldError[] {
  const needsRules = action === 'DENY' || action === 'CUSTOM';
  return [
    ...mistakeAt(
      fieldPath(path, 'rules'),
      needsRules && given.length === 0
        ? `is required with action ${action}: without rules it would have no effect`
        : undefined,
    ),
    ...mistakeAt(
      fieldPath(path, 'provider'),
      action === 'CUSTOM' && provider === undefined ? 'is required with action CUSTOM' : undefined,
    ),
    ...mistakeAt(
      fieldPath(path, 'provider'),
      action !== 'CUSTOM' && provider !== undefined ? 'is only for action CUSTOM' : undefined,
    ),
  ];
}
