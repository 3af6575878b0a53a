/**
 * The identities of a mesh: the control plane is the authority, and each agent exchanges a token for its certificate, as on a machine without
 * Kubernetes (docs/identity.md).
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  defaultAudience,
  issueToken,
  localTokenFile,
  localTokenKey,
} from '../../src/discovery/xds/access/local-tokens.ts';

/** Service account of each program. */
const accounts = {
  gateway: 'demo/gateway',
  sidecar: 'demo/sample',
  extra: 'demo/extra',
  client: 'demo/client',
  'sample-v1': 'demo/sample',
  'sample-v2': 'demo/sample',
} as const;

export type AgentName = keyof typeof accounts;

/** The identity that an agent presents to its peers. */
export const spiffeIdOf = (name: AgentName): string => {
  const [namespace, account] = accounts[name].split('/');
  return `spiffe://cluster.local/ns/${namespace}/sa/${account}`;
};

export class MeshIdentity {
  readonly #authorityDirectory: string;
  readonly #port: number;
  readonly #tokens = new Map<AgentName, string>();

  /** @param port TLS port of the control plane */
  constructor(root: string, port: number) {
    this.#authorityDirectory = join(root, 'ca');
    this.#port = port;
  }

  get discoveryArguments(): readonly string[] {
    return ['--secureGRPCAddr', `127.0.0.1:${this.#port}`];
  }

  get discoveryEnvironment(): NodeJS.ProcessEnv {
    return { SELF_SIGNED_CA_DIR: this.#authorityDirectory };
  }

  get agentArguments(): readonly string[] {
    return ['--discoveryAddress', `localhost:${this.#port}`, '--controlPlaneAuthPolicy', 'MUTUAL_TLS'];
  }

  /** Issues tokens like the command, but without starting a program, which would take half a second per agent. */
  async issueTokens(): Promise<void> {
    const key = localTokenKey(join(this.#authorityDirectory, localTokenFile));
    for (const [name, account] of Object.entries(accounts) as [AgentName, string][]) {
      const [namespace = '', serviceAccount = ''] = account.split('/');
      const order = { namespace, serviceAccount, audience: defaultAudience, ttlSeconds: 3_600 };
      this.#tokens.set(name, await issueToken(key, order, new Date()));
    }
  }

  /**
   * Writes what a pod would mount for its agent: a token, and the root of the control plane, which must have run before.
   * @param folder the agent's working directory, which is created
   */
  mount(name: AgentName, folder: string, discovery: string, env: NodeJS.ProcessEnv): void {
    const [tokens, roots] = [join(folder, 'var/run/secrets/tokens'), join(folder, 'var/run/secrets/istio')];
    for (const directory of [tokens, roots]) mkdirSync(directory, { recursive: true });
    const args = ['token', accounts[name], '--dir', this.#authorityDirectory];
    const token = this.#tokens.get(name) ?? execFileSync(discovery, args, { env });
    writeFileSync(join(tokens, 'istio-token'), token, { mode: 0o600 });
    // A copy, because the control plane sends later roots.
    const root = join(roots, 'root-cert.pem');
    rmSync(root, { force: true });
    copyFileSync(join(this.#authorityDirectory, 'root-cert.pem'), root);
  }
}
