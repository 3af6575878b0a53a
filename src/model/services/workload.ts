/** A workload that may serve a service: a pod, or a WorkloadEntry. */
import { compareText } from '../config/config.ts';
import { sameEndpoint, sameLabels } from './same-endpoint.ts';
import type { Endpoint } from './service.ts';

export interface Workload {
  readonly kind: 'Pod' | 'WorkloadEntry';
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The first address is that of {@link template}. */
  readonly addresses: readonly string[];
  readonly template: EndpointTemplate;
  /** Ports by name: container ports of a pod, or ports of a WorkloadEntry. */
  readonly ports: Readonly<Record<string, number>>;
  /** Milliseconds since the Unix epoch. */
  readonly creationTime: number;
}

export type EndpointTemplate = Omit<Endpoint, 'port' | 'servicePortName'>;

export interface WorkloadEvent {
  readonly previous?: Workload | undefined;
  readonly current?: Workload | undefined;
}

export function workloadId({ kind, namespace, name }: Pick<Workload, 'kind' | 'namespace' | 'name'>): string {
  return `${kind}/${namespace}/${name}`;
}

export function compareWorkloadAge(a: Workload, b: Workload): number {
  return a.creationTime - b.creationTime || compareText(a.name, b.name) || compareText(a.kind, b.kind);
}

export function sameWorkload(a: Workload | undefined, b: Workload | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  return (
    a.creationTime === b.creationTime &&
    a.addresses.join() === b.addresses.join() &&
    sameLabels(a.labels, b.labels) &&
    sameEndpoint({ ...a.template, port: 0, servicePortName: '' }, { ...b.template, port: 0, servicePortName: '' }) &&
    Object.keys(a.ports).length === Object.keys(b.ports).length &&
    Object.entries(a.ports).every(([name, port]) => b.ports[name] === port)
  );
}

/** Ignores inherited properties such as `constructor`, because names are untrusted. */
export function portNamed({ ports }: Pick<Workload, 'ports'>, name: string): number | undefined {
  return Object.hasOwn(ports, name) ? ports[name] : undefined;
}

export function endpointOf(workload: Pick<Workload, 'template'>, servicePortName: string, port: number): Endpoint {
  return { ...workload.template, port, servicePortName };
}
