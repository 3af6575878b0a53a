/** Replicas of pilot-discovery as programs in a cluster, and workloads that connect with their account's token. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ChannelCredentials, credentials, Metadata } from '@grpc/grpc-js';
import { afterAll } from 'vitest';
import { AdsTestClient, type SotwStream, typeUrls } from '../ads-client.ts';
import { createAuthority } from '../certs/authority.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';
import { type Command, pilotDiscovery } from '../harness/program-files.ts';
import type { ApiServerAddress } from './api-server-process.ts';
import type { Cluster } from './cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

export interface Replica {
  readonly program: Program;
  readonly securePort: number;
  readonly plainPort: number;
  readonly httpPort: number;
}

/** Node metadata of a workload. */
export interface NodeWords {
  /** Default `sidecar`. */
  readonly type?: 'sidecar' | 'router';
  readonly ip?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Starts replicas. Call it at the top level of a file, which stops everything when it ends. */
export class Replicas {
  readonly #cluster: Cluster;
  readonly #folder = mkdtempSync(join(tmpdir(), 'cp-replicas-'));
  readonly #authority = createAuthority();
  readonly #programs: Program[] = [];
  readonly #clients: AdsTestClient[] = [];
  readonly #env: NodeJS.ProcessEnv;
  readonly #wrap: (command: Command) => Command;

  /** @param wrap wraps the command of the program */
  constructor(
    cluster: Cluster,
    env: NodeJS.ProcessEnv = {},
    wrap: (command: Command) => Command = (command) => command,
  ) {
    this.#cluster = cluster;
    this.#env = env;
    this.#wrap = wrap;
    afterAll(async () => {
      for (const client of this.#clients) client.close();
      await Promise.all(this.#programs.map((program) => program.stop({ signal: 'SIGKILL' })));
      rmSync(this.#folder, { recursive: true, force: true });
    });
  }

  /**
   * @param token for requests to the API server; by default an administrator's
   * @param flags additional flags
   * @param via another address of the API server, such as a proxy in front of it
   */
  async start(name: string, token?: string, via?: ApiServerAddress, flags: readonly string[] = []): Promise<Replica> {
    const [securePort, plainPort, httpPort] = (await freePorts(3)) as [number, number, number];
    const { certificate, privateKey } = this.#authority.issue(['127.0.0.1']);
    const file = (fileName: string, text: string): string => {
      const path = join(this.#folder, `${name}-${fileName}`);
      writeFileSync(path, text);
      return path;
    };
    const kubeconfig = join(this.#folder, `${name}-kubeconfig`);
    writeKubeconfig(kubeconfig, { address: via ?? this.#cluster.address }, token);
    const { executable, args } = this.#wrap(pilotDiscovery());
    const program = Program.run(`replica ${name}`, executable, {
      args: [
        ...[...args, 'discovery', '--registries', 'Kubernetes', '--kubeconfig', kubeconfig],
        ...['--secureGRPCAddr', `127.0.0.1:${securePort}`, '--grpcAddr', `127.0.0.1:${plainPort}`],
        ...['--httpAddr', `127.0.0.1:${httpPort}`, '--monitoringAddr=', '--httpsAddr=', '--shutdownDuration', '1s'],
        ...['--caCertFile', file('ca', this.#authority.certificate)],
        ...['--tlsCertFile', file('cert', certificate), '--tlsKeyFile', file('key', privateKey)],
        ...flags,
      ],
      env: {
        ...process.env,
        ...{ POD_NAME: name, POD_NAMESPACE: this.#cluster.namespace, PILOT_DEBOUNCE_AFTER: '10ms' },
        ...this.#env,
      },
      cwd: this.#folder,
    });
    this.#programs.push(program);
    await eventually(
      `${name} is ready`,
      async () => (await fetch(`http://127.0.0.1:${httpPort}/ready`).catch(() => undefined))?.status === 200,
      { hopeless: () => program.hopeless() },
    );
    return { program, securePort, plainPort, httpPort };
  }

  /** Credentials of a service account of the file's namespace. */
  async credentialsOf(account: string): Promise<ChannelCredentials> {
    const token = await this.#cluster.token(account, 'istio-ca');
    const calls = credentials.createFromMetadataGenerator((_, callback) => {
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${token}`);
      callback(null, metadata);
    });
    return credentials.combineChannelCredentials(
      credentials.createSsl(Buffer.from(this.#authority.certificate)),
      calls,
    );
  }

  /** A stream whose first request identifies the node; it acknowledges every response. */
  connect(
    port: number,
    { type = 'sidecar', ip = '10.9.0.1', metadata = {} }: NodeWords,
    callCredentials?: ChannelCredentials,
  ): SotwStream {
    const client = new AdsTestClient(port, callCredentials);
    this.#clients.push(client);
    const stream = client.sotw();
    stream.onResponse = ({ typeUrl, nonce, versionInfo }) => {
      stream.send({ typeUrl, responseNonce: nonce, versionInfo });
    };
    const { namespace } = this.#cluster;
    const id = `${type}~${ip}~vm.${namespace}~${namespace}.svc.cluster.local`;
    const nodeMetadata = { NAMESPACE: namespace, CLUSTER_ID: 'Kubernetes', ...metadata };
    stream.send({ node: { id, cluster: 'vm', metadata: nodeMetadata as never }, typeUrl: typeUrls.CDS });
    return stream;
  }
}
