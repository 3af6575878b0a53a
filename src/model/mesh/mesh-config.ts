import { compareText } from '../config/config.ts';
import type {
  H2UpgradePolicy,
  LocalityLoadBalancerSetting,
  TcpKeepalive,
} from '../kinds/destinations/traffic-policy.ts';
import type { LabelSelector } from '../kinds/label-selector.ts';
import type { HttpRetry } from '../kinds/virtual-service/virtual-service.ts';
import type { OutboundTrafficMode } from '../kinds/workloads/sidecar.ts';
import { defaultProxyConfig, mergeProxyConfig, type ProxyConfig } from './proxy-config.ts';

export interface DnsCertificate {
  readonly secretName: string;
  readonly dnsNames: readonly string[];
}

/** CA certificates that workloads trust in addition to the mesh's CA. */
export interface MeshRoots {
  readonly pem?: string;
  readonly spiffeBundleUrl?: string;
  /** Trust domains that the certificates sign for; empty for the mesh's own. */
  readonly trustDomains: readonly string[];
}

export interface ConfigSourceSettings {
  /** An address such as `fs:///etc/mesh`, `k8s://` or `xds://config.example.com:15010`. */
  readonly address: string;
  readonly tlsSettings?: ConfigSourceTls;
}

export interface ConfigSourceTls {
  readonly mode: 'DISABLE' | 'SIMPLE' | 'MUTUAL' | 'ISTIO_MUTUAL';
  /** PEM text or a path. */
  readonly caCertificates?: string;
  readonly clientCertificate?: string;
  readonly privateKey?: string;
  readonly subjectAltNames?: readonly string[];
  readonly sni?: string;
  readonly insecureSkipVerify?: boolean;
}

export interface MeshConfig {
  readonly proxyListenPort: number;
  readonly proxyInboundListenPort: number;
  /** 0 disables the HTTP proxy listener. */
  readonly proxyHttpPort: number;
  readonly connectTimeoutMs: number;
  readonly tcpKeepalive?: TcpKeepalive;
  /** 0 disables the timeout. */
  readonly protocolDetectionTimeoutMs: number;
  readonly ingressClass: string;
  readonly ingressService: string;
  readonly ingressControllerMode: 'UNSPECIFIED' | 'OFF' | 'DEFAULT' | 'STRICT';
  readonly ingressSelector: string;
  readonly enableTracing: boolean;
  /** Empty disables the access log. */
  readonly accessLogFile: string;
  readonly accessLogFormat: string;
  readonly accessLogEncoding: 'TEXT' | 'JSON';
  readonly enableEnvoyAccessLogService: boolean;
  readonly disableEnvoyListenerLog: boolean;
  readonly trustDomain: string;
  readonly trustDomainAliases: readonly string[];
  readonly caCertificates: readonly MeshRoots[];
  readonly certificates: readonly DnsCertificate[];
  readonly outboundTrafficPolicy: { readonly mode: OutboundTrafficMode };
  readonly inboundTrafficPolicy: { readonly mode: 'PASSTHROUGH' | 'LOCALHOST' };
  readonly enableAutoMtls: boolean;
  readonly localityLbSetting: LocalityLoadBalancerSetting;
  readonly rootNamespace: string;
  readonly defaultServiceExportTo: readonly string[];
  readonly defaultVirtualServiceExportTo: readonly string[];
  readonly defaultDestinationRuleExportTo: readonly string[];
  /** Specific to chartpilot: namespaces whose objects may affect proxies of other namespaces, in addition to the root namespace. `*` means all. */
  readonly exportingNamespaces: readonly string[];
  readonly dnsRefreshRateMs: number;
  readonly serviceSettings: readonly ServiceSetting[];
  readonly discoverySelectors: readonly LabelSelector[];
  readonly enablePrometheusMerge: boolean;
  readonly extensionProviders: readonly ExtensionProvider[];
  /** Names of extension providers that are ignored because their settings are invalid. */
  readonly invalidProviders?: readonly string[];
  readonly defaultProviders: DefaultProviders;
  readonly h2UpgradePolicy: Exclude<H2UpgradePolicy, 'DEFAULT'>;
  readonly defaultHttpRetryPolicy?: HttpRetry;
  readonly configSources: readonly ConfigSourceSettings[];
  readonly meshMTLS?: TlsDefaults;
  readonly tlsDefaults?: TlsDefaults;
  readonly pathNormalization: {
    readonly normalization: 'DEFAULT' | 'NONE' | 'BASE' | 'MERGE_SLASHES' | 'DECODE_AND_MERGE_SLASHES';
  };
  readonly inboundClusterStatName: string;
  readonly outboundClusterStatName: string;
  readonly verifyCertificateAtClient: boolean;
  readonly defaultConfig: ProxyConfig;
}

export interface MeshConfigPart extends Partial<Omit<MeshConfig, 'defaultConfig' | 'invalidProviders'>> {
  readonly defaultConfig?: Partial<ProxyConfig>;
}

export const defaultMeshConfig: MeshConfig = {
  proxyListenPort: 15001,
  proxyInboundListenPort: 15006,
  proxyHttpPort: 0,
  connectTimeoutMs: 10_000,
  protocolDetectionTimeoutMs: 0,
  ingressClass: 'istio',
  ingressService: 'istio-ingressgateway',
  ingressControllerMode: 'STRICT',
  ingressSelector: '',
  enableTracing: true,
  accessLogFile: '',
  accessLogFormat: '',
  accessLogEncoding: 'TEXT',
  enableEnvoyAccessLogService: false,
  disableEnvoyListenerLog: false,
  trustDomain: 'cluster.local',
  trustDomainAliases: [],
  caCertificates: [],
  certificates: [],
  outboundTrafficPolicy: { mode: 'ALLOW_ANY' },
  inboundTrafficPolicy: { mode: 'PASSTHROUGH' },
  enableAutoMtls: true,
  localityLbSetting: { enabled: true },
  rootNamespace: 'istio-system',
  defaultServiceExportTo: ['*'],
  defaultVirtualServiceExportTo: ['*'],
  defaultDestinationRuleExportTo: ['*'],
  exportingNamespaces: ['*'],
  dnsRefreshRateMs: 60_000,
  serviceSettings: [],
  discoverySelectors: [],
  enablePrometheusMerge: true,
  extensionProviders: [
    { name: 'prometheus', prometheus: {} },
    { name: 'stackdriver', stackdriver: {} },
    { name: 'envoy', envoyFileAccessLog: { path: '/dev/stdout' } },
  ],
  defaultProviders: {},
  h2UpgradePolicy: 'DO_NOT_UPGRADE',
  configSources: [],
  pathNormalization: { normalization: 'DEFAULT' },
  inboundClusterStatName: '',
  outboundClusterStatName: '',
  verifyCertificateAtClient: true,
  defaultConfig: defaultProxyConfig,
};

/** Proxy settings, providers and trust domain aliases are merged; other fields of `override` replace those of `base`. */
export function mergeMeshConfig(base: MeshConfig, override: MeshConfigPart): MeshConfig {
  const { defaultConfig, defaultProviders, extensionProviders, trustDomainAliases, ...replacingFields } = override;
  const configuredByName = new Map((extensionProviders ?? []).map((provider) => [provider.name, provider]));
  const baseProviders = base.extensionProviders.map((provider) => configuredByName.get(provider.name) ?? provider);
  const baseNames = new Set(baseProviders.map((provider) => provider.name));
  return {
    ...base,
    ...replacingFields,
    defaultConfig:
      defaultConfig === undefined ? base.defaultConfig : mergeProxyConfig(base.defaultConfig, defaultConfig),
    defaultProviders: { ...base.defaultProviders, ...defaultProviders },
    extensionProviders: [
      ...baseProviders,
      ...[...configuredByName.values()].filter((provider) => !baseNames.has(provider.name)),
    ],
    trustDomainAliases: [...new Set([...base.trustDomainAliases, ...(trustDomainAliases ?? [])])].sort(compareText),
  };
}

export interface ServiceSetting {
  readonly settings?: { readonly clusterLocal?: boolean };
  readonly hosts?: readonly string[];
}

/** The settings are in the field that has the name of the provider's type. They are not decoded. */
export interface ExtensionProvider {
  readonly name: string;
  readonly [providerType: string]: unknown;
}

export interface DefaultProviders {
  readonly tracing?: readonly string[];
  readonly metrics?: readonly string[];
  readonly accessLogging?: readonly string[];
}

export interface TlsDefaults {
  readonly minProtocolVersion?: 'TLS_AUTO' | 'TLSV1_2' | 'TLSV1_3';
  readonly cipherSuites?: readonly string[];
  readonly ecdhCurves?: readonly string[];
}
