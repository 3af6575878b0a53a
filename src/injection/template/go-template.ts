import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, fail } from '../../model/fields/decode.ts';
import * as violation from '../../model/fields/violation.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { defaultProxyConfig, proxyConfigToJson } from '../../model/mesh/proxy-config.ts';
import type { Json } from '../pod/pod.ts';
import { parseYamlObject } from '../yaml-text.ts';
import { imageOf, type TemplateInput, type TemplatePod } from './template-input.ts';

/** Optional npm package that executes Go templates. */
export const goTemplatesPackage = 'chartpilot-go-templates';

/** Serializable as JSON; equal calls have equal output. */
export interface GoTemplateCall {
  readonly name: string;
  readonly template: string;
  /** The field names are those of packages/go-templates/go/render.go. */
  readonly data: Json;
  /** `protoToJSON` omits these fields of the proxy configuration. */
  readonly proxyDefaults: Json;
}

export type RenderGoTemplate = (call: GoTemplateCall) => Decoded<TemplatePod>;

export interface GoTemplateRenderer {
  /** Never rejects. */
  render(call: GoTemplateCall): Promise<Decoded<string>>;
}

/** Without its template, a pod would bypass the mesh, so pods with a Go template are rejected if the package is not installed. */
export const rejectGoTemplate: RenderGoTemplate = ({ name }) =>
  fail(
    `templates.${name}`,
    violation.unsupportedFeature(
      `is a Go template, and the npm package ${goTemplatesPackage} that executes it is not installed; install it, or write the template as a strategic merge patch in YAML`,
    ),
  );

export interface GoTemplates {
  /** Absent if the package is not installed. */
  readonly goTemplates?: GoTemplateRenderer;
  /** Templates that {@link withGoTemplates} has rendered. If absent, pods with a Go template are rejected. */
  readonly renderGoTemplate?: RenderGoTemplate;
}

/** Calls `run` twice: the first call collects the required templates, the second call receives them rendered. */
export async function withGoTemplates<Injector extends GoTemplates, T>(
  injector: Injector,
  run: (injector: Injector) => T,
): Promise<T> {
  const { goTemplates } = injector;
  if (goTemplates === undefined) return run(injector);
  const calls = new Map<string, GoTemplateCall>();
  const recordCall: RenderGoTemplate = (call) => {
    calls.set(JSON.stringify(call), call);
    return E.right({});
  };
  const firstResult = run({ ...injector, renderGoTemplate: recordCall });
  if (calls.size === 0) return firstResult;
  const renderedTemplates = new Map<string, Decoded<TemplatePod>>();
  for (const [key, call] of calls) {
    const output = await goTemplates.render(call);
    renderedTemplates.set(key, E.isLeft(output) ? output : parseYamlObject(output.right, `templates.${call.name}`));
  }
  return run({ ...injector, renderGoTemplate: (call) => renderedTemplates.get(JSON.stringify(call))! });
}

export function goTemplateCall(name: string, template: string, input: TemplateInput, values: Json): GoTemplateCall {
  const { pod, namespace, workload, settings, mesh, proxyConfig, proxyUid, proxyGid, isNative } = input;
  return {
    name,
    template,
    data: {
      typeMeta: { kind: workload.kind, apiVersion: workload.apiVersion },
      deploymentMeta: { name: workload.name, namespace },
      objectMeta: pod.metadata,
      spec: pod.spec,
      proxyConfig: proxyConfigToJson(proxyConfig),
      meshConfig: meshConfigJson(mesh),
      values: values,
      revision: settings.revision || 'default',
      proxyImage: imageOf(input, settings.values.image),
      proxyInitImage: imageOf(input, settings.values.initImage),
      proxyUID: proxyUid,
      proxyGID: proxyGid,
      inboundTrafficPolicyMode: mesh.inboundTrafficPolicy.mode.toLowerCase(),
      nativeSidecars: isNative,
    },
    proxyDefaults: proxyConfigToJson(defaultProxyConfig),
  };
}

/** Unused fields of `.MeshConfig` have Go's zero value. */
function meshConfigJson(mesh: MeshConfig): Json {
  const { connectTimeoutMs, protocolDetectionTimeoutMs, dnsRefreshRateMs, defaultConfig } = mesh;
  const { proxyListenPort, proxyInboundListenPort, proxyHttpPort, ingressClass, ingressService } = mesh;
  const { ingressControllerMode, ingressSelector, enableTracing, enableAutoMtls, enablePrometheusMerge } = mesh;
  const { accessLogFile, accessLogFormat, accessLogEncoding, enableEnvoyAccessLogService } = mesh;
  const { trustDomain, trustDomainAliases, rootNamespace, outboundTrafficPolicy, inboundTrafficPolicy } = mesh;
  const { defaultServiceExportTo, defaultVirtualServiceExportTo, defaultDestinationRuleExportTo } = mesh;
  const seconds = (ms: number): string => `${ms / 1000}s`;
  return {
    ...{ proxyListenPort, proxyInboundListenPort, proxyHttpPort, ingressClass, ingressService },
    ...{ ingressControllerMode, ingressSelector, enableTracing, enableAutoMtls, enablePrometheusMerge },
    ...{ accessLogFile, accessLogFormat, accessLogEncoding, enableEnvoyAccessLogService },
    ...{ trustDomain, trustDomainAliases, rootNamespace, outboundTrafficPolicy, inboundTrafficPolicy },
    ...{ defaultServiceExportTo, defaultVirtualServiceExportTo, defaultDestinationRuleExportTo },
    connectTimeout: seconds(connectTimeoutMs),
    protocolDetectionTimeout: seconds(protocolDetectionTimeoutMs),
    dnsRefreshRate: seconds(dnsRefreshRateMs),
    defaultConfig: proxyConfigToJson(defaultConfig),
  };
}
