import * as E from 'fp-ts/lib/Either.js';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import { isCidr } from '../../model/fields/names.ts';
import * as violation from '../../model/fields/violation.ts';
import { decodeProxyConfig } from '../../model/mesh/proxy-config.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Pod, Texts } from '../pod/pod.ts';
import { parseYamlText } from '../yaml-text.ts';

/** Returns `undefined` for a valid value. */
type Check = (value: string) => violation.FieldViolation | undefined;

const listItems = (value: string): string[] => (value === '' ? [] : value.split(',').map((item) => item.trim()));
const isPort = (item: string): boolean => /^\d{1,5}$/.test(item) && Number(item) <= 65_535;

const listOf =
  (expected: string, isValidItem: (item: string) => boolean, allowsAll: boolean): Check =>
  (value) =>
    (allowsAll && value === '*') || listItems(value).every(isValidItem) ? undefined : violation.mustBe(expected, value);

const portsOrAll = listOf('ports separated by commas, or *', isPort, true);
const ports = listOf('ports separated by commas', isPort, false);
const rangesOrAll = listOf('IP ranges (CIDR) separated by commas, or *', isCidr, true);
const ranges = listOf('IP ranges (CIDR) separated by commas', isCidr, false);
const interfaces = listOf(
  'names of network interfaces separated by commas',
  (item) => /^[^\s/]{1,15}$/.test(item),
  false,
);
const port: Check = (value) => (isPort(value) ? undefined : violation.mustBe('a port from 0 to 65535', value));
const boolean: Check = (value) =>
  booleanOf(value) === undefined ? violation.unknownValue(['true', 'false'], value) : undefined;
const count: Check = (value) =>
  /^\d{1,9}$/.test(value) ? undefined : violation.mustBe('an integer from 0 to 999999999', value);
const oneOf =
  (...allowedValues: readonly string[]): Check =>
  (value) =>
    allowedValues.includes(value) ? undefined : violation.unknownValue(allowedValues, value);
const quantity: Check = (value) =>
  /^\+?(\d+(\.\d*)?|\.\d+)([EPTGMk]i?|Ki|m|u|n|[eE][-+]?\d+)?$/.test(value)
    ? undefined
    : violation.mustBe('a quantity such as 100m or 128Mi', value);
const jsonObject: Check = (value) => {
  try {
    return isObject(JSON.parse(value)) ? undefined : violation.wrongType('a JSON object', value);
  } catch {
    return violation.mustBe('a JSON object', value);
  }
};
const volumesByName: Check = (value) => {
  const violationOfJson = jsonObject(value);
  if (violationOfJson !== undefined) return violationOfJson;
  const name = Object.keys(JSON.parse(value) as object).find(
    (key) => !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(key),
  );
  return name === undefined ? undefined : violation.mustBe('an object with names of volumes as keys', name);
};
const oneWord: Check = (value) =>
  /^[\w:,.*-]*$/.test(value) ? undefined : violation.mustBe('levels such as warning or scope:debug', value);
const objectName: Check = (value) =>
  /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(value) ? undefined : violation.mustBe('the name of a ConfigMap', value);
const image: Check = (value) => (/^\S+$/.test(value) ? undefined : violation.mustBe('an image reference', value));
const proxyConfig: Check = (value) => {
  const decoded = parseProxyConfig(value);
  if (E.isRight(decoded)) {
    const invalidVariable = Object.keys(decoded.right.proxyMetadata ?? {}).find(
      (variable) => !/^[ -<>-~]+$/.test(variable),
    );
    return invalidVariable === undefined
      ? undefined
      : violation.mustBe('a name of variables in proxyMetadata', invalidVariable);
  }
  const { path, ...firstError } = decoded.left[0];
  return path === '' ? firstError : { ...firstError, message: `${path}: ${firstError.message}` };
};

export function parseProxyConfig(value: string): ReturnType<typeof decodeProxyConfig> {
  const parsedYaml = parseYamlText(value, '');
  return E.isLeft(parsedYaml) ? parsedYaml : decodeProxyConfig(parsedYaml.right, '');
}

const checks: Readonly<Record<string, Check>> = {
  'traffic.sidecar.istio.io/includeOutboundIPRanges': rangesOrAll,
  'traffic.sidecar.istio.io/excludeOutboundIPRanges': ranges,
  'traffic.sidecar.istio.io/includeInboundPorts': portsOrAll,
  'traffic.sidecar.istio.io/excludeInboundPorts': ports,
  'traffic.sidecar.istio.io/includeOutboundPorts': ports,
  'traffic.sidecar.istio.io/excludeOutboundPorts': ports,
  'traffic.sidecar.istio.io/excludeInterfaces': interfaces,
  'traffic.sidecar.istio.io/kubevirtInterfaces': interfaces,
  'istio.io/reroute-virtual-interfaces': interfaces,
  'status.sidecar.istio.io/port': port,
  'readiness.status.sidecar.istio.io/initialDelaySeconds': count,
  'readiness.status.sidecar.istio.io/periodSeconds': count,
  'readiness.status.sidecar.istio.io/failureThreshold': count,
  'sidecar.istio.io/interceptionMode': oneOf('REDIRECT', 'TPROXY', 'NONE'),
  'sidecar.istio.io/rewriteAppHTTPProbers': boolean,
  'sidecar.istio.io/nativeSidecar': boolean,
  'sidecar.istio.io/capNetBindService': boolean,
  'sidecar.istio.io/proxyCPU': quantity,
  'sidecar.istio.io/proxyCPULimit': quantity,
  'sidecar.istio.io/proxyMemory': quantity,
  'sidecar.istio.io/proxyMemoryLimit': quantity,
  'sidecar.istio.io/proxyImage': image,
  'sidecar.istio.io/proxyImageType': oneWord,
  'sidecar.istio.io/logLevel': oneOf('trace', 'debug', 'info', 'warning', 'warn', 'error', 'critical', 'off'),
  'sidecar.istio.io/componentLogLevel': oneWord,
  'sidecar.istio.io/agentLogLevel': oneWord,
  'sidecar.istio.io/bootstrapOverride': objectName,
  'sidecar.istio.io/userVolume': volumesByName,
  'sidecar.istio.io/userVolumeMount': volumesByName,
  'prometheus.istio.io/merge-metrics': boolean,
  'proxy.istio.io/config': proxyConfig,
};

const units: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** The result is NaN for an invalid quantity. */
function amountOf(quantityText: string): number {
  const [, digits = '', unit = ''] = /^([-+.\d]+(?:[eE][-+]?\d+)?)([A-Za-z]*)$/.exec(quantityText) ?? [];
  return Number(digits || 'NaN') * (units[unit] ?? Number.NaN);
}

/** Without this check, the API server reports a request above its limit without the names of the annotations. */
function limitErrors(annotations: Texts, resource: 'proxyCPU' | 'proxyMemory'): violation.FieldError[] {
  const { [`sidecar.istio.io/${resource}`]: request = '', [`sidecar.istio.io/${resource}Limit`]: limit = '' } =
    annotations;
  if (!(amountOf(request) > amountOf(limit))) return [];
  const limitViolation = violation.mustBe(`at least sidecar.istio.io/${resource}, which is ${request}`, limit);
  return violation.errorsAt(`metadata.annotations["sidecar.istio.io/${resource}Limit"]`, limitViolation);
}

export function annotationErrors({ metadata: { annotations = {} } }: Pod): violation.FieldError[] {
  const annotationViolations = Object.entries(annotations).flatMap(([name, value]) => {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    return violation.errorsAt(`metadata.annotations["${name}"]`, check?.(value));
  });
  return [...annotationViolations, ...limitErrors(annotations, 'proxyCPU'), ...limitErrors(annotations, 'proxyMemory')];
}
