/** Names are those of Istio's chart, so that existing values apply. */
import type { LabelSelector } from '../model/kinds/label-selector.ts';
import type { Json, Texts } from './pod/pod.ts';

/** @param revision empty for the default one */
export const injectorMapName = (revision: string): string =>
  revision === '' || revision === 'default' ? 'istio-sidecar-injector' : `istio-sidecar-injector-${revision}`;

export interface InjectionConfig {
  readonly policy: string;
  readonly defaultTemplates: readonly string[];
  /** A template with a built-in name replaces the built-in one. */
  readonly templates: Readonly<Record<string, Json>>;
  readonly goTemplates: Readonly<Record<string, string>>;
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  readonly neverInjectSelector: readonly LabelSelector[];
  readonly alwaysInjectSelector: readonly LabelSelector[];
  readonly injectedAnnotations: Texts;
}

/** The values include the defaults of the chart. */
export interface InjectionValues {
  readonly hub: string;
  readonly tag: string;
  /** A suffix of the tag, such as `distroless` or `debug`; may be empty. */
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
  /** Uses nft instead of iptables (`istio-iptables --native-nftables`). */
  readonly nativeNftables: boolean;
  readonly readiness: ReadinessTimes;
  readonly startupFailureThreshold: number;
  readonly startupProbe: boolean;
  /** If absent, `holdApplicationUntilProxyStarts` applies. */
  readonly lifecycle?: Json;
  readonly resources: Json;
  readonly rewriteAppHTTPProbe: boolean;
  readonly cni: { readonly enabled: boolean; readonly provider: string };
  readonly gateways: { readonly securityContext?: Json; readonly seccompProfile?: Json };
  /** The pod's annotation has priority. `auto` depends on the kubelets' support. */
  readonly nativeSidecars: boolean | 'auto';
  readonly proxyEnvironment: Texts;
}

export interface ReadinessTimes {
  readonly initialDelaySeconds: number;
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

export interface InjectionSettings {
  readonly config: InjectionConfig;
  readonly values: InjectionValues;
  /** Go templates read the original of key `values`. */
  readonly writtenValues?: Json;
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
