import { isObject } from '../../../runtime/json-object.ts';
import {
  boolean,
  count,
  type Decoder,
  decimal,
  dictionary,
  durationAtLeast,
  durationOrZero,
  type FieldDecoders,
  type FieldError,
  fieldPath,
  integer,
  list,
  mapDecoder,
  name,
  type OptionalField,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictingField,
  restrictions,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { atLeastOneOf, atMostOneOf, exactlyOneOf, withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect, withoutEffectBeside } from '../../fields/effect.ts';
import { isIpAddress } from '../../fields/names.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors, fileName, lineViolation } from '../field-rules.ts';
import type { PortSelector } from '../virtual-service/virtual-service.ts';
import { localityErrors } from './locality-rules.ts';
import type * as T from './traffic-policy.ts';

/** Envoy's largest Maglev table; its size must be a prime. */
const maxMaglevTableSize = 5_000_011;

const portSelector: Decoder<PortSelector> = struct<PortSelector>({ number: required(port) });

export const connectTimeoutMs: Decoder<number> = refine(durationAtLeast(1), (ms, path) => {
  return ms <= 3_600_000 ? [] : [violation.fieldError(path, violation.outOfRange('at most 1h', `${ms}ms`))];
});

export const tcpKeepalive: Decoder<T.TcpKeepalive> = struct<T.TcpKeepalive>({
  probes: optional(count),
  timeMs: optional(durationAtLeast(1000), 'time'),
  intervalMs: optional(durationAtLeast(1000), 'interval'),
});

const tcpSettings = struct<T.TcpSettings>({
  maxConnections: optional(count),
  connectTimeoutMs: optional(connectTimeoutMs, 'connectTimeout'),
  tcpKeepalive: optional(tcpKeepalive),
  maxConnectionDurationMs: optional(durationAtLeast(1), 'maxConnectionDuration'),
  idleTimeoutMs: optional(durationOrZero, 'idleTimeout'),
});

const upgradePolicy = optional(oneOf(['DEFAULT', 'DO_NOT_UPGRADE', 'UPGRADE']));

const httpFields: FieldDecoders<T.HttpSettings> = {
  http1MaxPendingRequests: optional(count),
  http2MaxRequests: optional(count),
  maxRequestsPerConnection: optional(integer(0, 536_870_912)),
  maxRetries: optional(count),
  idleTimeoutMs: optional(durationOrZero, 'idleTimeout'),
  h2UpgradePolicy: upgradePolicy,
  useClientProtocol: optional(boolean),
  maxConcurrentStreams: optional(count),
  http2KeepAlive: optional(
    struct<T.Http2KeepAlive>({
      intervalMs: required(durationAtLeast(1), 'interval'),
      timeoutMs: optional(durationAtLeast(1), 'timeout'),
    }),
  ),
};

function poolOf(fields: FieldDecoders<T.HttpSettings>): Decoder<T.ConnectionPoolSettings> {
  const http = refine(struct<T.HttpSettings>(fields), ({ h2UpgradePolicy, useClientProtocol }, path) =>
    h2UpgradePolicy === 'UPGRADE' && useClientProtocol === true
      ? [
          violation.fieldError(
            fieldPath(path, 'h2UpgradePolicy'),
            violation.conflict('must not be UPGRADE with useClientProtocol: true'),
          ),
        ]
      : [],
  );
  return withSchemaValidation(
    refine(struct<T.ConnectionPoolSettings>({ tcp: optional(tcpSettings), http: optional(http) }), (pool, path) =>
      pool.tcp || pool.http ? [] : [violation.fieldError(path, violation.missingAny(['tcp', 'http']))],
    ),
    { minProperties: 1 },
  );
}

export const connectionPool = poolOf(httpFields);

export const inboundConnectionPool = poolOf({
  ...httpFields,
  h2UpgradePolicy: withoutEffect(upgradePolicy, 'the protocol of the port applies', ['DEFAULT', 'DO_NOT_UPGRADE']),
});

/** Rejects line breaks, for which Envoy rejects all routes of a port, or all clusters. */
const singleLineText: Decoder<string> = refine(name, (value, path) => violation.errorsAt(path, lineViolation(value)));
const singleLineOrEmpty: Decoder<string> = refine(text, (value, path) =>
  violation.errorsAt(path, lineViolation(value)),
);
const ringSize = integer(0, 8_388_608);

const httpCookie = struct<T.HttpCookie>({
  name: required(singleLineText),
  path: optional(singleLineOrEmpty),
  ttlMs: optional(durationOrZero, 'ttl'),
  attributes: optional(
    refine(
      // The value is optional, because attributes such as Secure have none.
      list(
        struct<{ name: string; value: string }>({
          name: required(singleLineText),
          value: withDefault(singleLineOrEmpty, ''),
        }),
      ),
      // Attribute names are case-insensitive (RFC 6265 §5.2).
      (attributes, path) =>
        duplicateErrors(
          attributes,
          (attribute) => attribute.name.toLowerCase(),
          (index) => `${path}[${index}].name`,
          'attribute',
        ),
    ),
  ),
});

const hashKeys = ['httpHeaderName', 'httpCookie', 'useSourceIp', 'httpQueryParameterName'] as const;
const ringFields = ['ringHash', 'maglev', 'minimumRingSize'] as const;

const consistentHash: Decoder<T.ConsistentHashLoadBalancer> = withSchemaValidation(
  refine(
    struct<T.ConsistentHashLoadBalancer>({
      httpHeaderName: optional(singleLineText),
      httpCookie: optional(httpCookie),
      useSourceIp: optional(boolean),
      httpQueryParameterName: optional(singleLineText),
      ringHash: optional(struct<{ minimumRingSize?: number }>({ minimumRingSize: optional(ringSize) })),
      maglev: optional(struct<{ tableSize?: number }>({ tableSize: optional(maglevTableSize()) })),
      minimumRingSize: optional(ringSize),
    }),
    (hash, path) => {
      const keys = hashKeys.filter((key) => hash[key] !== undefined);
      const setRingFields = ringFields.filter((key) => hash[key] !== undefined);
      return [
        ...(keys.length === 1 ? [] : [violation.fieldError(path, violation.choiceViolation(hashKeys, keys))]),
        ...(setRingFields.length <= 1 ? [] : [violation.fieldError(path, violation.exclusiveFields(ringFields))]),
      ];
    },
  ),
  { ...exactlyOneOf(hashKeys), ...atMostOneOf(ringFields) },
);

function maglevTableSize(): Decoder<number> {
  return refine(integer(2, maxMaglevTableSize), (size, path) => {
    return isPrime(size) ? [] : [violation.fieldError(path, violation.outOfRange('a prime number', size))];
  });
}

function isPrime(value: number): boolean {
  for (let divisor = 2; divisor * divisor <= value; divisor++) if (value % divisor === 0) return false;
  return value > 1;
}

const region = struct<{ from: string; to: string }>({ from: required(name), to: required(name) });

function ineffectiveIfDisabled<A>(field: OptionalField<A>): OptionalField<A> {
  return withoutEffectBeside(field, 'enabled: false disables it', ({ enabled }) => enabled === false);
}

function ineffectiveUnlessEnabled<A>(field: OptionalField<A>): OptionalField<A> {
  return withoutEffectBeside(field, 'it needs enabled: true', ({ enabled }) => enabled !== true);
}

export const localityLbSetting: Decoder<T.LocalityLoadBalancerSetting> = refine(
  struct<T.LocalityLoadBalancerSetting>({
    distribute: ineffectiveIfDisabled(
      optional(
        list(
          struct<{ from: string; to: Readonly<Record<string, number>> }>({
            from: required(name),
            to: required(dictionary(integer(1, 100))),
          }),
        ),
      ),
    ),
    failover: ineffectiveIfDisabled(optional(list(region))),
    failoverPriority: ineffectiveIfDisabled(optional(list(name))),
    enabled: optional(boolean),
  }),
  localityErrors,
);

const localityLabels = ['topology.kubernetes.io/region', 'topology.kubernetes.io/zone', 'topology.istio.io/subzone'];

const zoneAwareLbSetting: Decoder<T.ZoneAwareLoadBalancerSetting> = refine(
  struct<T.ZoneAwareLoadBalancerSetting>({
    enabled: optional(boolean),
    failover: ineffectiveUnlessEnabled(optional(list(region))),
    failoverPriority: ineffectiveUnlessEnabled(optional(list(name))),
    minClusterSize: ineffectiveUnlessEnabled(optional(count)),
  }),
  ({ failover }, path) => localityErrors({ ...(failover && { failover }) }, path),
  ({ failoverPriority = [] }, path) =>
    failoverPriority.flatMap((label, index) =>
      violation.errorsAt(
        `${fieldPath(path, 'failoverPriority')}[${index}]`,
        localityLabels.includes(label.split('=', 1)[0]!)
          ? violation.disallowedValue('must not be a region, zone or subzone, which always apply', label)
          : undefined,
      ),
    ),
);

const warmup = struct<T.WarmupConfiguration>({
  durationMs: required(durationAtLeast(1), 'duration'),
  minimumPercent: optional(percent()),
  aggression: optional(
    withSchemaValidation(
      refine(decimal, (value, path) =>
        value >= 1 ? [] : [violation.fieldError(path, violation.outOfRange('at least 1', value))],
      ),
      { minimum: 1 },
    ),
  ),
});

function percent(): Decoder<number> {
  const decoder = refine(decimal, (value, path) => {
    return value >= 0 && value <= 100 ? [] : [violation.fieldError(path, violation.outOfRange('from 0 to 100', value))];
  });
  return withSchemaValidation(decoder, { minimum: 0, maximum: 100 });
}

interface WrittenLoadBalancer extends Omit<T.LoadBalancerSettings, 'simple'> {
  readonly simple?: T.SimpleLoadBalancer | 'LEAST_CONN' | 'UNSPECIFIED';
}

const loadBalancer: Decoder<T.LoadBalancerSettings> = withSchemaValidation(
  mapDecoder(
    refine(
      struct<WrittenLoadBalancer>(
        {
          simple: optional(
            oneOf(['UNSPECIFIED', 'LEAST_CONN', 'RANDOM', 'PASSTHROUGH', 'ROUND_ROBIN', 'LEAST_REQUEST']),
          ),
          consistentHash: optional(consistentHash),
          localityLbSetting: optional(localityLbSetting),
          zoneAwareLbSetting: optional(zoneAwareLbSetting),
          warmup: withoutEffectBeside(
            optional(warmup),
            'only ROUND_ROBIN and LEAST_REQUEST support warm-up',
            ({ simple, consistentHash: hash }) => simple === 'RANDOM' || simple === 'PASSTHROUGH' || isObject(hash),
          ),
        },
        { warmupDurationSecs: ['warmup', mapDecoder(durationAtLeast(1), (ms) => ({ durationMs: ms }))] },
      ),
      (settings, path) =>
        settings.simple !== undefined && settings.consistentHash !== undefined
          ? [violation.fieldError(path, violation.exclusiveFields(['simple', 'consistentHash']))]
          : [],
      (settings, path) =>
        settings.localityLbSetting !== undefined && settings.zoneAwareLbSetting !== undefined
          ? [violation.fieldError(path, violation.exclusiveFields(['localityLbSetting', 'zoneAwareLbSetting']))]
          : [],
    ),
    ({ simple, ...otherSettings }): T.LoadBalancerSettings => {
      if (simple === undefined || simple === 'UNSPECIFIED') return otherSettings;
      return { ...otherSettings, simple: simple === 'LEAST_CONN' ? 'LEAST_REQUEST' : simple };
    },
  ),
  { allOf: [atMostOneOf(['simple', 'consistentHash']), atMostOneOf(['localityLbSetting', 'zoneAwareLbSetting'])] },
);

const writtenOutlierDetection = struct<T.OutlierDetection>(
  {
    consecutive5xxErrors: optional(count),
    consecutiveGatewayErrors: optional(count),
    splitExternalLocalOriginErrors: optional(boolean),
    consecutiveLocalOriginFailures: optional(count),
    intervalMs: optional(durationAtLeast(1), 'interval'),
    baseEjectionTimeMs: optional(durationAtLeast(1), 'baseEjectionTime'),
    maxEjectionPercent: optional(integer(0, 100)),
    minHealthPercent: optional(integer(0, 100)),
  },
  { consecutiveErrors: ['consecutiveGatewayErrors', count] },
);

const outlierDetection = refine(writtenOutlierDetection, (outlier, path) =>
  violation.errorsAt(
    fieldPath(path, 'consecutiveLocalOriginFailures'),
    (outlier.consecutiveLocalOriginFailures ?? 0) > 0 && outlier.splitExternalLocalOriginErrors !== true
      ? violation.conflict('needs splitExternalLocalOriginErrors: true')
      : undefined,
  ),
);

const disabledTlsReason = 'mode DISABLE disables TLS';
const ownCertificateReason = 'only mode MUTUAL presents a client certificate';
const notMeshModeReason = 'only modes SIMPLE and MUTUAL use it';

function onlyInModes<A>(field: OptionalField<A>, reason: string, modes: readonly string[]): OptionalField<A> {
  return withoutEffectBeside(field, reason, ({ mode }) => typeof mode === 'string' && !modes.includes(mode), [false]);
}

export const clientTls: Decoder<T.ClientTlsSettings> = withSchemaValidation(
  refine(
    struct<T.ClientTlsSettings>({
      mode: required(oneOf(['DISABLE', 'SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL'])),
      clientCertificate: onlyInModes(optional(fileName), ownCertificateReason, ['MUTUAL', 'ISTIO_MUTUAL']),
      privateKey: onlyInModes(optional(fileName), ownCertificateReason, ['MUTUAL', 'ISTIO_MUTUAL']),
      ...restrictions({
        caCertificates: onlyInModes(optional(fileName), disabledTlsReason, ['SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL']),
        subjectAltNames: onlyInModes(optional(list(name)), disabledTlsReason, ['SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL']),
        credentialName: onlyInModes(optional(name), notMeshModeReason, ['SIMPLE', 'MUTUAL']),
        caCrl: onlyInModes(optional(fileName), notMeshModeReason, ['SIMPLE', 'MUTUAL']),
      }),
      sni: onlyInModes(optional(text), disabledTlsReason, ['SIMPLE', 'MUTUAL', 'ISTIO_MUTUAL']),
      insecureSkipVerify: onlyInModes(optional(boolean), notMeshModeReason, ['SIMPLE', 'MUTUAL']),
    }),
    clientTlsErrors,
  ),
  {
    allOf: [
      {
        anyOf: [
          { properties: { mode: { enum: ['DISABLE', 'SIMPLE', 'ISTIO_MUTUAL'] } } },
          { required: ['credentialName'] },
          { required: ['clientCertificate', 'privateKey'] },
        ],
      },
      {
        anyOf: [
          { properties: { mode: { enum: ['DISABLE', 'SIMPLE', 'MUTUAL'] } } },
          { not: atLeastOneOf(['clientCertificate', 'privateKey', 'caCertificates']) },
        ],
      },
    ],
  },
);

const certificateFiles = ['clientCertificate', 'privateKey', 'caCertificates'] as const;

function clientTlsErrors(tls: T.ClientTlsSettings, path: string): FieldError[] {
  const setFields = certificateFiles.filter((field) => tls[field] !== undefined);
  const errors: FieldError[] = [];
  if (tls.insecureSkipVerify === true) {
    // With MUTUAL, `credentialName` is allowed: it provides the client certificate, and its CA is not used.
    const verificationFields = [
      'caCertificates',
      'subjectAltNames',
      ...(tls.mode === 'SIMPLE' ? ['credentialName' as const] : []),
    ];
    const ineffectiveFields = verificationFields.filter(
      (field) => tls[field as keyof T.ClientTlsSettings] !== undefined,
    );
    errors.push(
      ...violation.errorsAt(
        fieldPath(path, 'insecureSkipVerify'),
        ineffectiveFields.length > 0
          ? violation.excludedField(`together with ${violation.listText(ineffectiveFields)}`)
          : undefined,
      ),
    );
  }
  if ((tls.mode === 'SIMPLE' || tls.mode === 'MUTUAL') && tls.credentialName !== undefined) {
    if (setFields.length > 0)
      errors.push(violation.fieldError(path, violation.exclusiveFields(['credentialName', ...setFields])));
    return errors;
  }
  if (tls.mode === 'MUTUAL') {
    for (const field of ['clientCertificate', 'privateKey'] as const) {
      if (tls[field] === undefined) {
        errors.push(
          violation.fieldError(
            fieldPath(path, field),
            violation.missingValue('with mode MUTUAL unless credentialName is set'),
          ),
        );
      }
    }
  }
  if (tls.mode === 'ISTIO_MUTUAL') {
    for (const field of setFields)
      errors.push(violation.fieldError(fieldPath(path, field), violation.excludedField('with mode ISTIO_MUTUAL')));
  }
  return errors;
}

const tunnel: Decoder<T.TunnelSettings> = struct<T.TunnelSettings>({
  protocol: optional(oneOf(['CONNECT', 'POST'])),
  targetHost: required(
    refine(name, (host, path) => {
      const isAddressOrHost = isIpAddress(host) || /^[\w-]+(\.[\w-]+)*$/.test(host);
      return isAddressOrHost
        ? []
        : [violation.fieldError(path, violation.mustBe('an IP address or a host name', host))];
    }),
  ),
  targetPort: required(port),
});

const retryBudget = struct<T.RetryBudget>({ percent: optional(percent()), minRetryConcurrency: optional(count) });

const portPolicyFields = {
  loadBalancer: optional(loadBalancer),
  connectionPool: optional(connectionPool),
  outlierDetection: optional(outlierDetection),
  ...restrictions({ tls: restrictingField(optional(clientTls)) }),
};

const portPolicy: Decoder<T.PortTrafficPolicy> = struct<T.PortTrafficPolicy>({
  ...portPolicyFields,
  port: required(portSelector),
});

export const trafficPolicy: Decoder<T.TrafficPolicy> = withSchemaValidation(
  refine(
    struct<T.TrafficPolicy>({
      ...portPolicyFields,
      portLevelSettings: optional(list(portPolicy)),
      tunnel: optional(tunnel),
      proxyProtocol: optional(struct<{ version: 'V1' | 'V2' }>({ version: required(oneOf(['V1', 'V2'])) })),
      retryBudget: optional(retryBudget),
    }),
    (policy, path) => [
      ...violation.errorsAt(path, Object.keys(policy).length === 0 ? violation.emptyValue() : undefined),
      ...duplicateErrors(
        policy.portLevelSettings ?? [],
        (settings) => String(settings.port.number),
        (index) => `${fieldPath(path, 'portLevelSettings')}[${index}]`,
        'port',
      ),
    ],
  ),
  { minProperties: 1 },
);
