/** ConfigMap `istio-sidecar-injector` has the keys `config` (YAML) and `values` (JSON or YAML), with the names of Istio's chart. */
import * as E from 'fp-ts/lib/Either.js';
import {
  anyValue,
  boolean,
  type Decoded,
  type Decoder,
  dictionary,
  type FieldError,
  fail,
  integer,
  list,
  struct,
  text,
  withDefault,
} from '../model/fields/decode.ts';
import { booleanOf } from '../model/fields/go-boolean.ts';
import { orQuoted } from '../model/fields/quoted-number.ts';
import * as violation from '../model/fields/violation.ts';
import { labelSelector } from '../model/kinds/label-selector.decode.ts';
import { isObject } from '../runtime/json-object.ts';
import type { Json } from './pod/pod.ts';
import {
  defaultInjectionConfig,
  defaultInjectionValues,
  type InjectionConfig,
  type InjectionSettings,
  type InjectionValues,
} from './settings.ts';
import { parseYamlObject } from './yaml-text.ts';

const configFields = struct<
  Omit<InjectionConfig, 'templates' | 'goTemplates'> & { readonly templates: Readonly<Record<string, string>> }
>({
  policy: withDefault(text, defaultInjectionConfig.policy),
  defaultTemplates: withDefault(list(text), defaultInjectionConfig.defaultTemplates),
  templates: withDefault(dictionary(text), {}),
  aliases: withDefault(dictionary(list(text)), {}),
  neverInjectSelector: withDefault(list(labelSelector), []),
  alwaysInjectSelector: withDefault(list(labelSelector), []),
  injectedAnnotations: withDefault(dictionary(text), {}),
});

export interface DecodedSettings<Settings> {
  readonly settings: Settings;
  readonly warnings: readonly FieldError[];
}

/** @returns errors for invalid fields and templates that are not YAML; warnings for fields that only old injectors use */
export function decodeInjectionConfig(yaml: string): Decoded<DecodedSettings<InjectionConfig>> {
  const parsedYaml = parseYamlObject(yaml, '');
  if (E.isLeft(parsedYaml)) return parsedYaml;
  const { template, ...fields } = parsedYaml.right;
  const decoded = configFields(fields, '');
  if (E.isLeft(decoded)) return decoded;
  const templates = templatesOf(decoded.right.templates);
  if (E.isLeft(templates)) return templates;
  const warnings =
    template === undefined
      ? []
      : [violation.fieldError('template', violation.ineffectiveField('only injectors before Istio 1.9 read it'))];
  return E.right({ settings: { ...decoded.right, ...templates.right }, warnings });
}

/** Templates are strategic merge patches in YAML, or Go templates that output such patches. */
function templatesOf(
  templates: Readonly<Record<string, string>>,
): Decoded<Pick<InjectionConfig, 'templates' | 'goTemplates'>> {
  const patches = new Map<string, Json>();
  const goTemplates = new Map<string, string>();
  const errors: FieldError[] = [];
  for (const [name, templateText] of Object.entries(templates)) {
    if (templateText.includes('{{')) {
      goTemplates.set(name, templateText);
      continue;
    }
    const patch = parseYamlObject(templateText, `templates.${name}`);
    if (E.isRight(patch)) patches.set(name, patch.right);
    else errors.push(...patch.left);
  }
  const [firstError, ...otherValues] = errors;
  if (firstError !== undefined) return E.left([firstError, ...otherValues]);
  return E.right({ templates: Object.fromEntries(patches), goTemplates: Object.fromEntries(goTemplates) });
}

const count = (defaultValue: number): ReturnType<typeof withDefault<number>> =>
  withDefault(orQuoted(integer(0, 1_000_000)), defaultValue);
const port = (defaultValue: number): ReturnType<typeof withDefault<number>> =>
  withDefault(orQuoted(integer(0, 65_535)), defaultValue);
const textField = (defaultValue: string): ReturnType<typeof withDefault<string>> => withDefault(text, defaultValue);
const object: Decoder<Json> = dictionary(anyValue);

/** Other components also read the chart's values, so unknown fields are ignored. */
function decoderOfKnownFields<T extends object>(fields: Parameters<typeof struct<T>>[0]): Decoder<T> {
  const decoder = struct<T>(fields);
  const names = new Set(Object.entries(fields).map(([name, field]) => (field as { from?: string }).from ?? name));
  return (value, path) =>
    decoder(
      isObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => names.has(name))) : value,
      path,
    );
}

const defaultValues = defaultInjectionValues;

const proxyFields = decoderOfKnownFields({
  image: textField(defaultValues.image),
  clusterDomain: textField(defaultValues.clusterDomain),
  logLevel: textField(defaultValues.logLevel),
  componentLogLevel: textField(defaultValues.componentLogLevel),
  statusPort: port(defaultValues.statusPort),
  includeIPRanges: textField(defaultValues.includeIPRanges),
  excludeIPRanges: textField(defaultValues.excludeIPRanges),
  includeInboundPorts: textField(defaultValues.includeInboundPorts),
  excludeInboundPorts: textField(defaultValues.excludeInboundPorts),
  includeOutboundPorts: textField(defaultValues.includeOutboundPorts),
  excludeOutboundPorts: textField(defaultValues.excludeOutboundPorts),
  privileged: withDefault(boolean, defaultValues.privileged),
  readinessInitialDelaySeconds: count(defaultValues.readiness.initialDelaySeconds),
  readinessPeriodSeconds: count(defaultValues.readiness.periodSeconds),
  readinessFailureThreshold: count(defaultValues.readiness.failureThreshold),
  startupProbe: withDefault(
    decoderOfKnownFields({
      enabled: withDefault(boolean, true),
      failureThreshold: count(defaultValues.startupFailureThreshold),
    }),
    { enabled: true, failureThreshold: defaultValues.startupFailureThreshold },
  ),
  lifecycle: withDefault(object, {}),
  resources: withDefault(object, defaultValues.resources),
});

const globalFields = decoderOfKnownFields({
  hub: textField(''),
  tag: withDefault(anyScalar(), ''),
  variant: textField(''),
  imagePullPolicy: textField(''),
  imagePullSecrets: withDefault(list(text), []),
  istioNamespace: textField(defaultValues.istioNamespace),
  caAddress: textField(''),
  meshID: textField(''),
  network: textField(''),
  pilotCertProvider: textField(defaultValues.pilotCertProvider),
  logAsJson: withDefault(boolean, false),
  nativeNftables: withDefault(boolean, defaultValues.nativeNftables),
  logging: withDefault(decoderOfKnownFields({ level: textField(defaultValues.agentLogLevel) }), {
    level: defaultValues.agentLogLevel,
  }),
  multiCluster: withDefault(decoderOfKnownFields({ clusterName: textField('') }), { clusterName: '' }),
  proxy: withDefault(proxyFields, defaultOf(proxyFields)),
  proxy_init: withDefault(decoderOfKnownFields({ image: textField(defaultValues.initImage) }), {
    image: defaultValues.initImage,
  }),
});

const valuesFields = decoderOfKnownFields({
  global: withDefault(globalFields, defaultOf(globalFields)),
  sidecarInjectorWebhook: withDefault(decoderOfKnownFields({ rewriteAppHTTPProbe: withDefault(boolean, true) }), {
    rewriteAppHTTPProbe: true,
  }),
  pilot: withDefault(
    decoderOfKnownFields({
      cni: withDefault(
        decoderOfKnownFields({ enabled: withDefault(boolean, false), provider: textField('default') }),
        defaultValues.cni,
      ),
      env: withDefault(dictionary(anyScalar()), {}),
    }),
    { cni: defaultValues.cni, env: {} },
  ),
  gateways: withDefault(
    decoderOfKnownFields({ securityContext: withDefault(object, {}), seccompProfile: withDefault(object, {}) }),
    { securityContext: {}, seccompProfile: {} },
  ),
});

/** Chart values such as the tag `1.24` are often numbers or booleans. */
function anyScalar(): Decoder<string> {
  return (value, path) =>
    ['string', 'number', 'boolean'].includes(typeof value)
      ? E.right(String(value))
      : fail(path, violation.wrongType('a string', value));
}

function defaultOf<T>(decoder: Decoder<T>): T {
  const decodedDefault = decoder({}, '');
  if (E.isLeft(decodedDefault)) throw new Error('an absent object must be valid');
  return decodedDefault.right;
}

export function decodeInjectionValues(yaml: string): Decoded<InjectionValues> {
  const parsedYaml = parseYamlObject(yaml, '');
  if (E.isLeft(parsedYaml)) return parsedYaml;
  const decoded = valuesFields(parsedYaml.right, '');
  if (E.isLeft(decoded)) return decoded;
  const values = valuesOf(decoded.right);
  const [firstError, ...otherValues] = imageErrors(values);
  return firstError === undefined ? E.right(values) : E.left([firstError, ...otherValues]);
}

/** Keeps the original values for Go templates. */
export function decodeWrittenValues(yaml: string): Decoded<Pick<InjectionSettings, 'values' | 'writtenValues'>> {
  const values = decodeInjectionValues(yaml);
  if (E.isLeft(values)) return values;
  return E.map((writtenValues: Json) => ({ values: values.right, writtenValues }))(parseYamlObject(yaml, ''));
}

/** No image is published as a default. */
function imageErrors({ hub, tag, image, initImage }: InjectionValues): FieldError[] {
  if (image.includes('/') && initImage.includes('/')) return [];
  const imageParts = [
    ['global.hub', hub],
    ['global.tag', tag],
  ] as const;
  return imageParts
    .filter(([, value]) => value === '')
    .map(([path]) =>
      violation.fieldError(
        path,
        violation.missingValue('unless global.proxy.image and global.proxy_init.image are complete references'),
      ),
    );
}

function valuesOf({ global, sidecarInjectorWebhook, pilot, gateways }: Decodes<typeof valuesFields>): InjectionValues {
  const { proxy, proxy_init: init, logging, multiCluster, meshID, ...otherValues } = global;
  const {
    startupProbe,
    readinessInitialDelaySeconds,
    readinessPeriodSeconds,
    readinessFailureThreshold,
    lifecycle,
    ...proxies
  } = proxy;
  const isSet = (value: Json): boolean => Object.keys(value).length > 0;
  return {
    ...otherValues,
    ...proxies,
    initImage: init.image,
    meshId: meshID,
    clusterName: multiCluster.clusterName || defaultValues.clusterName,
    agentLogLevel: logging.level,
    readiness: {
      initialDelaySeconds: readinessInitialDelaySeconds,
      periodSeconds: readinessPeriodSeconds,
      failureThreshold: readinessFailureThreshold,
    },
    startupProbe: startupProbe.enabled,
    startupFailureThreshold: startupProbe.failureThreshold,
    ...(isSet(lifecycle) && { lifecycle }),
    rewriteAppHTTPProbe: sidecarInjectorWebhook.rewriteAppHTTPProbe,
    cni: pilot.cni,
    gateways: {
      ...(isSet(gateways.securityContext) && { securityContext: gateways.securityContext }),
      ...(isSet(gateways.seccompProfile) && { seccompProfile: gateways.seccompProfile }),
    },
    nativeSidecars: booleanOf(pilot.env.ENABLE_NATIVE_SIDECARS ?? '') ?? 'auto',
    proxyEnvironment: {},
  };
}

type Decodes<D> = D extends Decoder<infer T> ? T : never;
