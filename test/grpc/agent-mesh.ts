/** A control plane and an agent for proxyless gRPC programs, as real processes: each can be restarted on its ports. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { CertificateCaller } from '../harness/certificate-caller.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';

export interface AgentMeshOptions {
  /** Address of the pod, which determines its services in the control plane. */
  readonly podIp: string;
  /** Objects of the configuration directory by file name. */
  readonly files: Readonly<Record<string, string>>;
  /** Lifetime of certificates, which are renewed after a tenth of it. */
  readonly secretTtl: string;
}

const at = (port: number): string => `127.0.0.1:${port}`;

export class AgentMesh {
  static readonly identity = 'spiffe://cluster.local/ns/shop/sa/echo';
  readonly root = mkdtempSync(join(tmpdir(), 'proxyless-'));
  readonly bootstrap = join(this.root, 'etc/istio/proxy/grpc-bootstrap.json');
  readonly certificates = join(this.root, 'certs');
  discovery!: Program;
  agent!: Program;
  readonly #options: AgentMeshOptions;
  readonly #ports: readonly number[];

  private constructor(options: AgentMeshOptions, ports: readonly number[]) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Starts the control plane. The agent has no valid token yet. */
  static async start(options: AgentMeshOptions): Promise<AgentMesh> {
    const mesh = new AgentMesh(options, await freePorts(4));
    mkdirSync(join(mesh.root, 'mesh'));
    for (const [name, text] of Object.entries(options.files)) mesh.write(name, text);
    await mesh.startDiscovery();
    for (const name of ['tokens', 'istio']) mkdirSync(join(mesh.root, 'var/run/secrets', name), { recursive: true });
    const roots = new CertificateCaller(join(mesh.root, 'ca')).roots();
    writeFileSync(join(mesh.root, 'var/run/secrets/istio/root-cert.pem'), roots);
    mesh.#writeToken('late');
    return mesh;
  }

  /** Writes a file of the configuration directory atomically. */
  write(name: string, text: string): void {
    writeFileSync(join(this.root, `${name}.new`), text);
    renameSync(join(this.root, `${name}.new`), join(this.root, 'mesh', name));
  }

  /** Gives the agent a token that the authority accepts. */
  grantToken(): void {
    const env = { ...process.env, SELF_SIGNED_CA_DIR: join(this.root, 'ca') };
    this.#writeToken(execFileSync(join(packageRoot(), 'bin/pilot-discovery'), ['token', 'shop/echo'], { env }));
  }

  #writeToken(token: string | Buffer): void {
    writeFileSync(join(this.root, 'var/run/secrets/tokens/istio-token'), token);
  }

  /** @returns status of the agent's readiness probe */
  async readiness(): Promise<number> {
    return (await fetch(`http://${at(this.#ports[3]!)}/healthz/ready`)).status;
  }

  async startDiscovery(): Promise<void> {
    const [grpc = 0, securePort = 0, http = 0] = this.#ports;
    this.discovery = Program.start('pilot-discovery', {
      args: [
        ...['discovery', '--grpcAddr', at(grpc), '--secureGRPCAddr', at(securePort), '--httpAddr', at(http)],
        ...['--monitoringAddr=', '--httpsAddr=', '--registries=', '--configDir', join(this.root, 'mesh')],
      ],
      env: { ...process.env, SELF_SIGNED_CA_DIR: join(this.root, 'ca') },
      cwd: this.root,
    });
    const isReady = async (): Promise<boolean> => (await fetch(`http://${at(http)}/ready`)).ok;
    await eventually('the control plane is ready', isReady, { hopeless: () => this.discovery.hopeless() });
  }

  startAgent(): void {
    const [grpc = 0, securePort = 0, , status] = this.#ports;
    this.agent = Program.start('pilot-agent', {
      args: [
        ...['proxy', 'sidecar', '--discoveryAddress', at(grpc), '--controlPlaneAuthPolicy', 'NONE'],
        ...['--statusPort', String(status), '--runDir', join(this.root, 'run'), '--binaryPath', '/none/envoy'],
      ],
      env: {
        ...process.env,
        ...{ DISABLE_ENVOY: 'true', ISTIO_META_GENERATOR: 'grpc', OUTPUT_CERTS: this.certificates },
        ...{ CA_ADDR: at(securePort), INSTANCE_IP: this.#options.podIp },
        ...{ POD_NAME: 'echo-0', POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'echo' },
        ...{ SECRET_TTL: this.#options.secretTtl },
        ...{ SECRET_GRACE_PERIOD_RATIO: '0.9', SECRET_GRACE_PERIOD_RATIO_JITTER: '0.005' },
      },
      cwd: this.root,
    });
  }

  /** Waits until certificates and the bootstrap file are written. */
  async ready(): Promise<void> {
    await eventually('the agent is ready', async () => (await this.readiness()) === 200, {
      hopeless: () => this.agent.hopeless(),
    });
  }

  async stop(): Promise<void> {
    await this.agent?.stop();
    await this.discovery?.stop();
    rmSync(this.root, { recursive: true, force: true });
  }
}
