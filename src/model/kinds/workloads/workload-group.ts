/** Template of the WorkloadEntries that are created when workloads register automatically. */
import type { WorkloadEntry } from './workload-entry.ts';

export interface WorkloadGroup {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  /** Each workload has its own address. */
  readonly template: Omit<WorkloadEntry, 'address'> & { readonly address?: string };
  readonly probe?: ReadinessProbe;
}

export interface ReadinessProbe {
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly httpGet?: {
    readonly path?: string;
    readonly port: number;
    readonly host?: string;
    readonly scheme?: 'HTTP' | 'HTTPS';
    readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
  };
  readonly tcpSocket?: { readonly host?: string; readonly port: number };
  readonly exec?: { readonly command: readonly string[] };
  readonly grpc?: { readonly service?: string; readonly port: number };
}
