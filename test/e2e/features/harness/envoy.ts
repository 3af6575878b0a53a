/** A real Envoy, started without an agent and configured by the control plane under test. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { envoyBinary } from '../../../fixtures/real-envoy.ts';
import { adsBootstrap } from '../../../harness/ads-bootstrap.ts';
import { eventually } from '../../../harness/eventually.ts';
import { Program } from '../../../harness/program.ts';

export interface ProxySettings {
  /** Default `sidecar`. */
  readonly type?: 'sidecar' | 'router';
  /** Default `shop`. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Added to the node's metadata. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Address of the proxy's endpoints (default: a unique address of 127.0.0.0/8). */
  readonly ip?: string;
  /** SPIFFE ID of its workload certificate, such as `spiffe://cluster.local/ns/shop/sa/web`. */
  readonly identity?: string;
  /** Delta xDS instead of state of the world. */
  readonly delta?: boolean;
  /** Latency to the control plane in milliseconds, as a round trip. Default 0. */
  readonly roundTripMs?: number;
  /** Path of the Envoy binary, if not the default one. */
  readonly binary?: string;
  /** Merged into the bootstrap's top level. */
  readonly bootstrap?: Readonly<Record<string, unknown>>;
}

export interface EnvoyNode {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A sidecar without traffic redirection: it binds the ports of services at loopback. */
export function nodeOf(name: string, settings: ProxySettings, ip: string): EnvoyNode {
  const { type = 'sidecar', namespace = 'shop', labels = {}, identity } = settings;
  return {
    id: `${type}~${settings.ip ?? ip}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    cluster: name,
    metadata: {
      NAMESPACE: namespace,
      LABELS: labels,
      WORKLOAD_CERTIFICATES: String(identity !== undefined),
      ...(type === 'sidecar' && { INTERCEPTION_MODE: 'NONE' }),
      ...settings.metadata,
    },
  };
}

export interface FeatureEnvoyOptions {
  readonly root: string;
  readonly name: string;
  readonly settings: ProxySettings;
  readonly ip: string;
  readonly xdsPort: number;
  readonly adminPort: number;
  /** Port of the server of its workload secrets, if it has an identity. */
  readonly secretsPort: number;
  /** Additional command-line arguments. */
  readonly args: readonly string[];
}

export class FeatureEnvoy {
  readonly name: string;
  readonly node: EnvoyNode;
  readonly program: Program;
  readonly #admin: string;

  constructor({ root, name, settings, ip, xdsPort, adminPort, secretsPort, args: extraArgs }: FeatureEnvoyOptions) {
    this.name = name;
    this.node = nodeOf(name, settings, ip);
    this.#admin = `http://127.0.0.1:${adminPort}`;
    const base = adsBootstrap({ node: this.node, xdsPort, adminPort, delta: settings.delta === true }) as Bootstrap;
    if (settings.identity !== undefined) base.static_resources.clusters.push(secretsCluster(base, secretsPort));
    const file = join(root, `${name}.bootstrap.json`);
    writeFileSync(file, JSON.stringify({ ...base, layered_runtime: runtime, ...settings.bootstrap }));
    // The access log is flushed often, because each request is compared with the result of explain.
    const args = ['-c', file, '--disable-hot-restart', '--concurrency', '1', '-l', 'warning'];
    args.push('--file-flush-interval-msec', '20', ...extraArgs);
    // Access logs may be written to /dev/stdout, which a process can open if it is a file but not if it is a socket.
    const shell = [
      '-c',
      'out=$1; shift; exec "$0" "$@" > "$out"',
      settings.binary ?? envoyBinary(),
      join(root, `${name}.stdout`),
    ];
    this.program = Program.run(`envoy ${name}`, '/bin/sh', { args: [...shell, ...args], env: process.env, cwd: root });
  }

  async admin(path: string, init?: RequestInit): Promise<string> {
    return (await fetch(`${this.#admin}${path}`, init)).text();
  }

  /** A counter or gauge; 0 if Envoy has none of this name. */
  async stat(name: string): Promise<number> {
    const text = await this.admin(`/stats?filter=^${encodeURIComponent(escapeRegExp(name))}$`);
    return Number(/: (\d+)/.exec(text)?.[1] ?? 0);
  }

  /** Resolves when no received resource waits for another one. */
  async warmed(): Promise<void> {
    const gauges = 'listener_manager.total_listeners_warming|cluster_manager.warming_clusters|server.state';
    await eventually(
      `envoy ${this.name} has warmed`,
      async () => {
        const text = await this.admin(`/stats?filter=^(${gauges})$`);
        return text.split('\n').filter((line) => /: 0$/.test(line)).length === 3;
      },
      { everyMs: 10, hopeless: () => this.program.hopeless() },
    );
  }

  async stop(): Promise<void> {
    await this.program.stop({ signal: 'SIGKILL' });
  }
}

/** As in the agent's bootstrap. By default, Envoy accepts short regular expressions only. */
const runtime = {
  layers: [{ name: 'static', static_layer: { 're2.max_program_size.error_level': 32_768 } }],
};

interface Bootstrap {
  readonly static_resources: { readonly clusters: { readonly name: string }[] };
}

/** Replaces the agent's cluster, which serves the workload's certificates. */
function secretsCluster({ static_resources: { clusters } }: Bootstrap, port: number): { name: string } {
  const text = JSON.stringify(clusters[0]).replaceAll(/"(cluster_)?name":"xds"/g, '"$1name":"sds-grpc"');
  return JSON.parse(text.replaceAll(/"port_value":\d+/g, `"port_value":${port}`)) as { name: string };
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
