import type { ContainerConfig } from './oci-layout.ts';

export const layerNames = ['debian', 'node', 'envoy', 'application'] as const;
export type LayerName = (typeof layerNames)[number];

export interface ImageDefinition {
  readonly tag: 'agent' | 'discovery';
  readonly title: string;
  readonly layers: readonly LayerName[];
  readonly config: ContainerConfig;
}

const common = {
  User: '1337:1337',
  Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
  WorkingDir: '/',
};

/** The init container of Istio's pods is the image `agent`, run as root with the command `istio-iptables`. */
export const images: readonly ImageDefinition[] = [
  {
    tag: 'agent',
    title: 'chartpilot sidecar, gateway and init container',
    layers: layerNames,
    config: { ...common, Entrypoint: ['/usr/local/bin/pilot-agent'] },
  },
  {
    tag: 'discovery',
    title: 'chartpilot control plane',
    layers: ['debian', 'node', 'application'],
    config: { ...common, Entrypoint: ['/usr/local/bin/pilot-discovery'] },
  },
];
