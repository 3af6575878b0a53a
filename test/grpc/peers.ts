/** gRPC clients and servers in separate processes, configured over xDS by a bootstrap file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { findOrBuild, goPeer } from '../cluster/go-program.ts';
import { eventually } from '../harness/eventually.ts';
import { endWithRunner } from '../harness/runner-watch.ts';

export type Language = 'go' | 'node';

export interface CallOrder {
  readonly id: number;
  /** For example `xds:///echo.shop:7070`. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Uses the credentials that the control plane configures. */
  readonly secure?: boolean;
}

export interface CallOutcome {
  readonly id: number;
  /** `OK` (Go) or `Ok` (Node), `Unavailable`, `DeadlineExceeded`, … */
  readonly code: string;
  readonly message?: string;
  /** Name of the server that responded. */
  readonly backend?: string;
  /** Identity in the server's certificate (Go). */
  readonly peer?: string;
  readonly serial?: string;
  /** Identity in the client's certificate, as the server (Go) received it. */
  readonly caller?: string;
  readonly ms: number;
}

export interface BootstrapOptions {
  readonly serverUri: string;
  readonly node: { readonly id: string; readonly metadata: Readonly<Record<string, unknown>> };
  /** Folder of key.pem, cert-chain.pem and root-cert.pem; without certificates if absent. */
  readonly certificates?: string;
}

/** Writes a bootstrap like the agent's, for a control plane at a port. */
export function writeBootstrap(folder: string, { serverUri, node, certificates }: BootstrapOptions): string {
  const path = join(folder, `grpc-bootstrap-${node.id.replaceAll(/[^\w]/g, '_')}.json`);
  const text = {
    xds_servers: [{ server_uri: serverUri, channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] }],
    node: { ...node, locality: {} },
    certificate_providers:
      certificates === undefined
        ? {}
        : {
            default: {
              plugin_name: 'file_watcher',
              config: {
                certificate_file: join(certificates, 'cert-chain.pem'),
                private_key_file: join(certificates, 'key.pem'),
                ca_certificate_file: join(certificates, 'root-cert.pem'),
                refresh_interval: '1s',
              },
            },
          },
    server_listener_resource_name_template: 'xds.istio.io/grpc/lds/inbound/%s',
  };
  writeFileSync(path, JSON.stringify(text));
  return path;
}

abstract class Peer {
  readonly lines: string[] = [];
  readonly child: ChildProcess;

  constructor(command: string, args: readonly string[], bootstrap: string, extraEnv: NodeJS.ProcessEnv = {}) {
    const env = { ...process.env, GRPC_XDS_BOOTSTRAP: bootstrap, ...extraEnv };
    this.child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    endWithRunner(this.child);
    this.child.once('exit', () => this.ended());
    createInterface({ input: this.child.stderr! }).on('line', (line) => this.lines.push(line));
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      this.lines.push(line);
      this.onOutput(JSON.parse(line));
    });
  }

  protected abstract onOutput(value: unknown): void;

  protected ended(): void {}

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exitEvent = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await exitEvent;
  }
}

/** A client process, which may call several targets. */
export class PeerClient extends Peer {
  readonly #pendingCalls = new Map<number, (outcome: CallOutcome) => void>();
  readonly #rejectCallbacks = new Map<number, (error: Error) => void>();
  #lastCallId = 0;

  static async start(language: Language, bootstrap: string): Promise<PeerClient> {
    if (language === 'node')
      return new PeerClient(process.execPath, [join(packageRoot(), 'test/grpc/node-peer.ts')], bootstrap);
    return new PeerClient(await findOrBuild(goPeer, () => {}), ['client'], bootstrap);
  }

  protected override ended(): void {
    const error = new Error(`the client ended:\n${this.lines.join('\n')}`);
    for (const reject of this.#rejectCallbacks.values()) reject(error);
  }

  /** @param order its default timeout is 15 s */
  call(order: Omit<CallOrder, 'id' | 'timeoutMs'> & { readonly timeoutMs?: number }): Promise<CallOutcome> {
    const id = ++this.#lastCallId;
    this.child.stdin!.write(`${JSON.stringify({ timeoutMs: 15_000, ...order, id })}\n`);
    return new Promise((resolve, reject) => {
      this.#pendingCalls.set(id, resolve);
      this.#rejectCallbacks.set(id, reject);
    });
  }

  /** Makes sequential calls. @returns number of responses by backend, or by code for calls without a backend */
  async split(count: number, order: Parameters<PeerClient['call']>[0]): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (let call = 0; call < count; call++) {
      const { backend, code } = await this.call(order);
      const key = backend ?? code;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }

  protected onOutput(value: unknown): void {
    const outcome = value as CallOutcome;
    this.#pendingCalls.get(outcome.id)?.(outcome);
    this.#pendingCalls.delete(outcome.id);
    this.#rejectCallbacks.delete(outcome.id);
  }
}

/** A server process that gets its listener over xDS. */
export class PeerServer extends Peer {
  /** `SERVING` or `NOT_SERVING` with the reason, as last reported by the server. */
  mode: { readonly mode: string; readonly reason?: string } | undefined;

  /** @param env additional variables of the program */
  static startOnNode(address: string, name: string, bootstrap: string, env: NodeJS.ProcessEnv = {}): PeerServer {
    const program = join(packageRoot(), 'test/grpc/node-server.ts');
    return new PeerServer(process.execPath, [program, address, name], bootstrap, env);
  }

  static async start(address: string, name: string, bootstrap: string): Promise<PeerServer> {
    return new PeerServer(await findOrBuild(goPeer, () => {}), ['server', address, name], bootstrap);
  }

  async serving(): Promise<void> {
    await eventually('the server serves', () => this.mode?.mode === 'SERVING').catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(this.mode)}\n${this.lines.join('\n')}`);
    });
  }

  protected onOutput(value: unknown): void {
    this.mode = value as PeerServer['mode'];
  }
}
