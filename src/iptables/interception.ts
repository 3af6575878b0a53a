/** Desired redirection of a pod: validated flags and environment of `istio-iptables`. */

export type IpFamily = 'v4' | 'v6';
export const ipFamilies: readonly IpFamily[] = ['v4', 'v6'];

/** Rules of Istio 1.16 (`g3`), or of current versions (`g4`). */
export type RuleGeneration = 'g3' | 'g4';

/** How inbound connections reach Envoy. `REDIRECT` rewrites the destination; `TPROXY` keeps it and needs NET_ADMIN in Envoy. */
export type InterceptionMode = 'REDIRECT' | 'TPROXY';

/** `*` for all, or only the listed items. */
export type AllOr<Item> = '*' | readonly Item[];

/** Captures outbound connections of all groups except some, or only of some. */
export interface OwnerGroups {
  readonly captured: 'all-but' | 'only';
  readonly groups: readonly string[];
}

/** Validated, so each value is at most one word of a rule. */
export interface Interception {
  readonly generation: RuleGeneration;
  readonly proxyPort: number;
  readonly inboundCapturePort: number;
  /** HBONE port, which is never redirected. */
  readonly inboundTunnelPort: number;
  readonly proxyUids: readonly string[];
  readonly proxyGids: readonly string[];
  readonly mode: InterceptionMode;
  readonly inboundPorts: AllOr<number>;
  /** Applies only if all inbound ports are captured. */
  readonly inboundPortsExclude: readonly number[];
  readonly excludeInterfaces: readonly string[];
  /** Interfaces of virtual machines, whose traffic is outbound. */
  readonly kubevirtInterfaces: readonly string[];
  readonly outboundRanges: Readonly<Record<IpFamily, AllOr<string>>>;
  readonly outboundRangesExclude: Readonly<Record<IpFamily, readonly string[]>>;
  readonly outboundPorts: readonly number[];
  readonly outboundPortsExclude: readonly number[];
  readonly ownerGroups: OwnerGroups;
  /** IPv4 range for the application's connections to itself on loopback (`ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR`). For IPv6, it is `::1/128`. */
  readonly loopbackRange: string;
  readonly tproxyMark: number;
  readonly tproxyRouteTable: number;
  readonly dropInvalid: boolean;
  readonly redirectDns: boolean;
  /** Captures port 53 of every name server instead of only those in resolv.conf. */
  readonly captureAllDns: boolean;
  readonly dnsServers: Readonly<Record<IpFamily, readonly string[]>>;
  /** Adds, before each rule, a rule that logs matching packets to netfilter's log. */
  readonly traceLogging: boolean;
  readonly ipv6: boolean;
}

/** Port of the agent's DNS server. */
export const dnsCapturePort = 15053;
