/** What a pod's redirection is to be: flags and environment of `istio-iptables`, checked (spec/agent.md §10.1). */

export type IpFamily = 'v4' | 'v6';
export const ipFamilies: readonly IpFamily[] = ['v4', 'v6'];

/** Which Istio the rules are those of: 1.16 (`g3`), or today's (`g4`). */
export type Generation = 'g3' | 'g4';

/** How inbound connections reach Envoy: with their destination rewritten, or as they are (needs NET_ADMIN in Envoy). */
export type InterceptionMode = 'REDIRECT' | 'TPROXY';

/** `*`, or a list: then nothing else is meant. */
export type AllOr<Item> = '*' | readonly Item[];

/** Whose outbound connections are captured: those of all groups but some, or of some alone. */
export interface OwnerGroups {
  readonly captured: 'all-but' | 'only';
  /** Names or ids of groups. */
  readonly groups: readonly string[];
}

/** Every value has been checked: none of them can be taken for more than one word of a rule. */
export interface Interception {
  readonly generation: Generation;
  /** Where outbound connections go. */
  readonly proxyPort: number;
  /** Where inbound connections go. */
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
  /** What comes from them is outbound traffic of virtual machines. */
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
  /** Every name server's port 53, and not only those of resolv.conf. */
  readonly captureAllDns: boolean;
  readonly dnsServers: Readonly<Record<IpFamily, readonly string[]>>;
  /** Packets are reported to netfilter's log before each rule that they match. */
  readonly traceLogging: boolean;
  readonly ipv6: boolean;
}

/** Where the agent's DNS server listens. */
export const dnsCapturePort = 15053;
