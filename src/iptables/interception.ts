/** Desired redirection of a pod: validated flags and environment of `istio-iptables` (spec/agent.md §10.1). */

export type IpFamily = 'v4' | 'v6';
export const ipFamilies: readonly IpFamily[] = ['v4', 'v6'];

/** Rules of Istio 1.16 (`g3`), or of current versions (`g4`). */
export type Generation = 'g3' | 'g4';

/** How inbound connections reach Envoy: with a rewritten destination, or unchanged (needs NET_ADMIN in Envoy). */
export type InterceptionMode = 'REDIRECT' | 'TPROXY';

/** `*`, or an exclusive list. */
export type AllOr<Item> = '*' | readonly Item[];

/** Outbound connections that are captured: of all groups except some, or only of some. */
export interface OwnerGroups {
  readonly captured: 'all-but' | 'only';
  /** Names or ids of groups. */
  readonly groups: readonly string[];
}

/** Validated: no value can be more than one word of a rule. */
export interface Interception {
  readonly generation: Generation;
  /** Destination of outbound connections. */
  readonly proxyPort: number;
  /** Destination of inbound connections. */
  readonly inboundCapturePort: number;
  /** HBONE: never redirected. */
  readonly inboundTunnelPort: number;
  readonly proxyUids: readonly string[];
  readonly proxyGids: readonly string[];
  readonly mode: InterceptionMode;
  readonly inboundPorts: AllOr<number>;
  /** Only with all ports. */
  readonly inboundPortsExclude: readonly number[];
  readonly excludeInterfaces: readonly string[];
  /** Their traffic is outbound traffic of virtual machines. */
  readonly kubevirtInterfaces: readonly string[];
  readonly outboundRanges: Readonly<Record<IpFamily, AllOr<string>>>;
  readonly outboundRangesExclude: Readonly<Record<IpFamily, readonly string[]>>;
  readonly outboundPorts: readonly number[];
  readonly outboundPortsExclude: readonly number[];
  readonly ownerGroups: OwnerGroups;
  /** IPv4 range of the application's own traffic on loopback (`ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR`); `::1/128` in IPv6. */
  readonly loopbackRange: string;
  readonly tproxyMark: number;
  readonly tproxyRouteTable: number;
  readonly dropInvalid: boolean;
  readonly redirectDns: boolean;
  /** Port 53 of every name server instead of those in resolv.conf. */
  readonly captureAllDns: boolean;
  readonly dnsServers: Readonly<Record<IpFamily, readonly string[]>>;
  /** Packets are reported to netfilter's log before each rule that they match. */
  readonly traceLogging: boolean;
  readonly ipv6: boolean;
}

/** Port of the agent's DNS server. */
export const dnsCapturePort = 15053;
