/**
 * Settings of the injector: the two parts of ConfigMap `istio-sidecar-injector` (spec/injection.md §1.4, §2.1). Names are those of Istio's
 * chart, so that existing values apply.
 */
import type { LabelSelector } from '../model/kinds/label-selector.ts';
import type { Json, Texts } from './pod/pod.ts';

/** Name of that ConfigMap. @param revision empty: the default one */
export const injectorMapName = (revision: string): string =>
  revision === '' || revision === 'default' ? 'istio-sidecar-injector' : `istio-sidecar-injector-${revision}`;

/** Key `config`. */
export interface InjectionConfig {
  readonly policy: string;
  /** Templates of pods without annotation `inject.istio.io/templates`. */
  readonly defaultTemplates: readonly string[];
  /** Strategic merge patches by name; one with the name of a built-in template replaces it. */
  readonly templates: Readonly<Record<string, Json>>;
  /** Templates in the language of Go's text/template, by name. */
  readonly goTemplates: Readonly<Record<string, string>>;
  /** Other names for lists of templates. */
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  readonly neverInjectSelector: readonly LabelSelector[];
  readonly alwaysInjectSelector: readonly LabelSelector[];
  /** Annotations that every injected pod gets. */
  readonly injectedAnnotations: Texts;
}

/** Key `values`, with the defaults of the chart. */
export interface InjectionValues {
  readonly hub: string;
  readonly tag: string;
  /** Suffix of the tag: `distroless`, `debug`; empty: none. */
  readonly variant: string;
  /** Name of the image, or a complete reference if it contains `/`. */
  readonly image: string;
  readonly initImage: string;
  readonly imagePullPolicy: string;
  readonly imagePullSecrets: readonly string[];
  readonly istioNamespace: string;
  readonly clusterDomain: string;
  readonly clusterName: string;
  readonly network: string;
  readonly meshId: string;
  readonly caAddress: string;
  readonly pilotCertProvider: string;
  /** Levels of Envoy, of its components, and of the agent. */
  readonly logLevel: string;
  readonly componentLogLevel: string;
  readonly agentLogLevel: string;
  readonly logAsJson: boolean;
  readonly statusPort: number;
  readonly includeIPRanges: string;
  readonly excludeIPRanges: string;
  readonly includeInboundPorts: string;
  readonly excludeInboundPorts: string;
  readonly includeOutboundPorts: string;
  readonly excludeOutboundPorts: string;
  readonly privileged: boolean;
  /** Pods are redirected with nft instead of iptables (`istio-iptables --native-nftables`). */
  readonly nativeNftables: boolean;
  readonly readiness: ReadinessTimes;
  readonly startupFailureThreshold: number;
  readonly startupProbe: boolean;
  /** Replaces the hooks of the proxy; absent: see `holdApplicationUntilProxyStarts`. */
  readonly lifecycle?: Json;
  readonly resources: Json;
  readonly rewriteAppHTTPProbe: boolean;
  readonly cni: { readonly enabled: boolean; readonly provider: string };
  readonly gateways: { readonly securityContext?: Json; readonly seccompProfile?: Json };
  /** Whether pods run the proxy as a native sidecar where their annotation does not decide. `auto`: if the kubelets run them. */
  readonly nativeSidecars: boolean | 'auto';
  /** Environment of each proxy, after the one that the injector sets. */
  readonly proxyEnvironment: Texts;
}

export interface ReadinessTimes {
  readonly initialDelaySeconds: number;
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

/** What one control plane injects. */
export interface InjectionSettings {
  readonly config: InjectionConfig;
  readonly values: InjectionValues;
  /** Key `values` as it is written: Go templates read it. */
  readonly writtenValues?: Json;
  /** Empty: the default revision. */
  readonly revision: string;
}

export const defaultInjectionConfig: InjectionConfig = {
  policy: 'enabled',
  defaultTemplates: ['sidecar'],
  templates: {},
  goTemplates: {},
  aliases: {},
  neverInjectSelector: [],
  alwaysInjectSelector: [],
  injectedAnnotations: {},
};

export const defaultInjectionValues: InjectionValues = {
  hub: '',
  tag: '',
  variant: '',
  image: 'proxyv2',
  initImage: 'proxyv2',
  imagePullPolicy: '',
  imagePullSecrets: [],
  istioNamespace: 'istio-system',
  clusterDomain: 'cluster.local',
  clusterName: 'Kubernetes',
  network: '',
  meshId: '',
  caAddress: '',
  pilotCertProvider: 'istiod',
  logLevel: 'warning',
  componentLogLevel: 'misc:error',
  agentLogLevel: 'default:info',
  logAsJson: false,
  statusPort: 15020,
  includeIPRanges: '*',
  excludeIPRanges: '',
  includeInboundPorts: '*',
  excludeInboundPorts: '',
  includeOutboundPorts: '',
  excludeOutboundPorts: '',
  privileged: false,
  nativeNftables: false,
  readiness: { initialDelaySeconds: 0, periodSeconds: 15, failureThreshold: 4 },
  startupFailureThreshold: 600,
  startupProbe: true,
  resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '2000m', memory: '1024Mi' } },
  rewriteAppHTTPProbe: true,
  cni: { enabled: false, provider: 'default' },
  gateways: {},
  nativeSidecars: 'auto',
  proxyEnvironment: {},
};
